"""The lab's web server, which answers only browsers on this machine."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe

from fedbandit_envs.samba.errors import MissingExtraError

HOST = "127.0.0.1"

_APP = Path(__file__).with_name("app.py")

# Content security policy: with it the browser refuses to load anything (fonts, scripts) from other machines, or to
# send anything (usage statistics) to them.
_ONLY_HERE = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'self'"
)


def serve(port: int, show: Callable[[str], None]) -> None:
    """Serves the lab until it is interrupted, then ends the process.

    The server accepts a request only if its host is the loopback address, so that a web site cannot reach the lab
    under the site's own name (DNS rebinding), and only with the access token, ``?access_token=...`` in the address.

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
        # The shutdown timeout lets the server end while pages are open.
        policy = [("content-security-policy", _ONLY_HERE)]
        settings = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, headers=policy)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(settings).run(sockets=[listening])
    # A normal exit would wait for ever for marimo's threads, one for each page opened. Nothing is left to be saved.
    os._exit(0)
