"""The libraries of the ``[secure]`` extra, imported when used: whoever does without SAMBA does without them."""

from importlib import import_module
from types import ModuleType
from typing import Any

from fedbandit_envs.wrappers.secure.errors import MissingExtraError


def _load(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{name} cannot be imported ({error}); the secure protocol needs the [secure] extra: "
            "python -m pip install 'fedbandit-envs[secure]'"
        ) from error


def require_extra() -> None:
    """Looks for all libraries, before anything is started.

    Raises:
        MissingExtraError: One is missing; the message says how to install it.
    """
    for name in ("cryptography.hazmat.primitives.ciphers.aead", "gmpy2", "phe"):
        _load(name)


def aes_gcm(key: bytes) -> Any:
    """Returns AES-GCM under a key; ``encrypt`` and ``decrypt`` take nonce, data and associated data."""
    return _load("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)


def invalid_tag() -> type[Exception]:
    """Returns the exception that ``decrypt`` raises for a wrong tag."""
    return _load("cryptography.exceptions").InvalidTag


def paillier() -> ModuleType:
    """Returns ``phe.paillier``, which counts with gmpy2."""
    _load("gmpy2")
    return _load("phe.paillier")
