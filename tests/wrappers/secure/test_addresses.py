"""Where roles listen and whom they call: addresses, and when they need TLS."""

import pytest

from fedbandit_envs.wrappers.secure.certificates import certify, tls_context
from fedbandit_envs.wrappers.secure.tcp import guarded


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"]
)
def test_addresses_are_checked(address):
    with pytest.raises(ValueError, match="HOST:PORT is required"):
        guarded(address, tls=True)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "192.168.0.1:1", "[::]:1", "example.org:1"])
def test_addresses_that_others_reach_need_tls(address):
    with pytest.raises(ValueError, match="TLS is required"):
        guarded(address, tls=False)
    assert guarded(address, tls=True)[1] == 1


def test_loopback_needs_no_tls():
    assert guarded("localhost:1", tls=False) == ("localhost", 1)
    assert guarded("[::1]:1", tls=False) == ("::1", 1)


def test_tls_is_modern_and_mutual():
    import ssl

    context = tls_context(certify(["comp"])["comp"], server=True)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
