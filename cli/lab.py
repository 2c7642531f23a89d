"""The command ``fedbandit lab``, which opens the lab's notebook in marimo."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.cli.terminal import require_extra
from fedbandit_envs.lab import NOTEBOOK


def lab(
    file: Annotated[Path, typer.Argument(help="Your copy.", dir_okay=False)] = Path("fedbandit_lab.py"),
    port: Annotated[int, typer.Option(help="Port on the loopback address.", min=1, max=65535)] = 2718,
    browser: Annotated[bool, typer.Option(help="Open the lab in a browser.")] = True,
    code: Annotated[bool, typer.Option(help="Show the cells, to change them, or only forms.")] = True,
) -> None:
    """Opens the lab, a notebook to set up and compare runs.

    It is open until Ctrl-C. You get a copy of the notebook that you can read and change. Only browsers on this machine
    can open it, at the address that is printed. Needs the extras `[lab,report]`, and for SAMBA the extra `[secure]`.

    Example: `fedbandit lab --no-browser --port 2718`
    """
    require_extra("lab", "marimo")
    if not file.exists():
        shutil.copyfile(NOTEBOOK, file)
    words = ["edit", "--skip-update-check"] if code else ["run", "--token"]
    words += ["--port", str(port), *([] if browser else ["--headless"]), str(file)]
    # This process becomes marimo's, so that whoever ends it ends the server.
    os.execv(sys.executable, [sys.executable, "-m", "marimo", *words])
