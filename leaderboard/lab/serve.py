"""Serves the lab to browsers of this machine, and to nobody else."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from fedbandit_envs.leaderboard.board.report import assets

HOST = "127.0.0.1"

_APP = Path(__file__).with_name("app.py")

# The browser itself refuses whatever would leave this machine: fonts, scripts and reports of use.
_ONLY_HERE = (
    b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; form-action 'self'; "
    b"frame-ancestors 'none'; base-uri 'self'"
)


class MissingLabError(ImportError):
    """The ``[lab]`` extra is not installed."""


def asgi_app(token: str) -> Any:
    """Returns the lab as an ASGI application.

    It answers to names of the loopback address alone, so that no page of elsewhere can reach it under a name of its
    own, and to who has the token.

    Args:
        token: What a browser must have, ``?access_token=...``.

    Raises:
        MissingLabError: The extra is not installed.
    """
    try:
        import marimo
        from starlette.middleware.trustedhost import TrustedHostMiddleware
    except ImportError as error:
        raise MissingLabError(
            "the lab needs the [lab] extra: python -m pip install 'fedbandit-envs[lab]'"
        ) from error
    # marimo's own way to draw asks a host elsewhere for MathJax.
    figure = (files(__name__.rpartition(".")[0]) / "figure.js").read_text(encoding="utf-8")
    head = "".join(f"<script>{script}</script>" for script in (assets.plotly(), figure))
    made = (
        marimo.create_asgi_app(quiet=True, token=token, html_head=head)
        .with_app(path="", root=str(_APP))
        .build()
    )
    return _telling_browsers(TrustedHostMiddleware(made, [HOST, "localhost"]))


def _telling_browsers(app: Any) -> Any:
    """Returns the application with answers that say what a browser may load for them."""

    async def told(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"content-security-policy", _ONLY_HERE)]
                message = {**message, "headers": headers}
            await send(message)

        await app(scope, receive, sent)

    return told


def serve(port: int, told: Callable[[str], None]) -> None:
    """Serves until it is interrupted, and ends the process then.

    Args:
        port: Of the loopback address; 0 for a free one.
        told: Is told the address, with the token.

    Raises:
        MissingLabError: The extra is not installed.
        OSError: The port is taken.
    """
    token = token_urlsafe(24)
    app = asgi_app(token)
    import uvicorn

    with socket.create_server((HOST, port)) as listening:
        told(f"http://{HOST}:{listening.getsockname()[1]}/?access_token={token}")
        # Open pages do not keep it from ending.
        settings = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(settings).run(sockets=[listening])
    # Marimo has threads for every page that was opened, which would wait for ever; there is nothing to be kept.
    os._exit(0)
