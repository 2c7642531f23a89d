"""Imports of the libraries in the ``[secure]`` extra on first use, so that everything else works without them."""

from importlib import import_module
from types import ModuleType

from fedbandit_envs.samba.errors import MissingExtraError

AEAD = "cryptography.hazmat.primitives.ciphers.aead"
"""Name of the module that has the cipher ``AESGCM``."""


def load(name: str) -> ModuleType:
    """Imports a module of the ``[secure]`` extra by its name and returns it.

    Raises:
        MissingExtraError: The module cannot be imported; the message says how to install the extra.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{name} cannot be imported ({error}); the secure protocol needs the [secure] extra: "
            "python -m pip install 'fedbandit-envs[secure]'"
        ) from error


def require_extra() -> None:
    """Imports all libraries of the ``[secure]`` extra, so that a run without them fails before it starts.

    Raises:
        MissingExtraError: A library is missing; the message says how to install the extra.
    """
    for name in (AEAD, "gmpy2", "phe"):
        load(name)
