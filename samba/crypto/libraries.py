"""Access to the libraries of the ``[secure]`` extra, imported on use so that everything else works without them."""

from importlib import import_module
from types import ModuleType

from fedbandit_envs.samba.errors import MissingExtraError

AEAD = "cryptography.hazmat.primitives.ciphers.aead"
"""The module that has ``AESGCM``."""


def load(name: str) -> ModuleType:
    """Returns a module of the extra.

    Raises:
        MissingExtraError: It cannot be imported; the message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{name} cannot be imported ({error}); the secure protocol needs the [secure] extra: "
            "python -m pip install 'fedbandit-envs[secure]'"
        ) from error


def require_extra() -> None:
    """Imports all libraries of the extra, so that a run without them fails before it starts.

    Raises:
        MissingExtraError: A library is missing; the message says how to install it.
    """
    for name in (AEAD, "gmpy2", "phe"):
        load(name)
