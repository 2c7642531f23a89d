"""The lab's server, which answers browsers on this machine only."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe

from fedbandit_envs.samba.errors import MissingExtraError

HOST = "127.0.0.1"

_APP = Path(__file__).with_name("app.py")

# The browser itself refuses what would be loaded from or sent to other machines: fonts, scripts, usage statistics.
_ONLY_HERE = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'self'"
)


def serve(port: int, show: Callable[[str], None]) -> None:
    """Serves the lab until it is interrupted, then ends the process.

    It answers requests to the loopback address only, so that no other site can reach it under a name of its own (DNS
    rebinding), and only those that have the access token, ``?access_token=...`` in the address.

    Args:
        port: Port on the loopback address; 0 for a free one.
        show: Called once with the lab's address, which contains the token.

    Raises:
        MissingExtraError: The ``[lab]`` extra is not installed.
        OSError: The port is taken.
    """
    try:
        import marimo
        import matplotlib  # noqa: F401 - figures need it, and a missing package is reported before the lab is served
        import uvicorn
        from starlette.middleware.trustedhost import TrustedHostMiddleware
    except ImportError as error:
        raise MissingExtraError(
            "the lab needs the [lab] extra: python -m pip install 'fedbandit-envs[lab]'"
        ) from error
    token = token_urlsafe(24)
    page = marimo.create_asgi_app(quiet=True, token=token).with_app(path="", root=str(_APP)).build()
    app = TrustedHostMiddleware(page, [HOST, "localhost"])
    with socket.create_server((HOST, port)) as listening:
        show(f"http://{HOST}:{listening.getsockname()[1]}/?access_token={token}")
        # Open pages do not keep the server from ending.
        policy = [("content-security-policy", _ONLY_HERE)]
        settings = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, headers=policy)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(settings).run(sockets=[listening])
    # Marimo's threads, one for each page opened, would be waited for without end; nothing is left to be saved.
    os._exit(0)
