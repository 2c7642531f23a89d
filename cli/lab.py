"""The command ``fedbandit lab``, which opens the lab's notebook in marimo."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.lab import NOTEBOOK


def lab(
    file: Annotated[
        Path, typer.Argument(help="Your copy of the notebook; made if it does not exist.")
    ] = Path("fedbandit_lab.py"),
    port: Annotated[int, typer.Option(help="Port on the loopback address.", min=1, max=65535)] = 2718,
    browser: Annotated[bool, typer.Option(help="Open the lab in a browser.")] = True,
    code: Annotated[
        bool, typer.Option(help="Show the cells, to change them; without it, only forms.")
    ] = True,
) -> None:
    """Opens the lab, a marimo notebook to set up runs and compare their results, until Ctrl-C.

    You get a copy of the notebook that you can read and change. Only browsers on this machine can open it, at the
    address that is printed. Needs the extras `[lab,report]`, and for SAMBA the extra `[secure]`.

    Example: `fedbandit lab --no-browser --port 2718`
    """
    if find_spec("marimo") is None:
        typer.echo(
            "Error: the lab needs the [lab] extra: python -m pip install 'fedbandit-envs[lab]'", err=True
        )
        raise typer.Exit(1)
    if not file.exists():
        shutil.copyfile(NOTEBOOK, file)
    words = ["edit" if code else "run", str(file), "--port", str(port), "--skip-update-check"]
    command = [sys.executable, "-m", "marimo", *words, *([] if browser else ["--headless"])]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
