"""The command ``fedbandit lab``, which serves the lab, an application in the browser."""

from typing import Annotated

import typer

from fedbandit_envs.cli.terminal import explained


def lab(
    port: Annotated[
        int, typer.Option(help="Port on the loopback address; 0 for a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the lab in a browser.")] = True,
) -> None:
    """Serves the lab, an application in the browser to set up runs and see their results, until Ctrl-C.

    Only browsers on this machine can open it, at the address that is printed. Needs the extra `[lab]`, and for the
    SAMBA tab the extra `[secure]`.

    Example: `fedbandit lab --no-browser --port 2718`
    """
    from fedbandit_envs.lab.serve import serve
    from fedbandit_envs.samba.errors import MissingExtraError

    def show(address: str) -> None:
        typer.echo(f"the lab is at {address}")
        if browser:
            typer.launch(address)

    with explained(OSError, option="--port", ending=[MissingExtraError]):
        serve(port, show)
