"""Without the [secure] extra there is nothing to test here."""

import pytest

from fedbandit_envs.samba import messages

pytest.importorskip("cryptography")
pytest.importorskip("phe")
pytest.importorskip("gmpy2")


@pytest.fixture(autouse=True)
def small_paillier_keys(monkeypatch):
    """Keys of 512 bits, within this process: drawing ones of 2048 takes longer than the rest of a small run."""
    monkeypatch.setattr(messages, "KEY_BITS", 512)
