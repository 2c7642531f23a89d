"""Access to the libraries of the ``[secure]`` extra, imported on use so that everything else works without them."""

from importlib import import_module
from types import ModuleType
from typing import Any

from fedbandit_envs.samba.errors import MissingExtraError


def _load(name: str) -> ModuleType:
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
    for name in ("cryptography.hazmat.primitives.ciphers.aead", "gmpy2", "phe"):
        _load(name)


def aes_gcm(key: bytes) -> Any:
    """Returns an AES-GCM cipher whose ``encrypt`` and ``decrypt`` take nonce, data and associated data."""
    return _load("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)


def invalid_tag() -> type[Exception]:
    """Returns the exception class that AES-GCM's ``decrypt`` raises for a wrong authentication tag."""
    return _load("cryptography.exceptions").InvalidTag


def paillier() -> ModuleType:
    """Returns the module ``phe.paillier``, after making sure that it computes with gmpy2."""
    _load("gmpy2")
    return _load("phe.paillier")
