"""Where roles listen and whom they call: addresses, and when they need TLS."""

import pytest
from samba_runs import certificates_of

from fedbandit_envs.samba.keys import tls_context
from fedbandit_envs.samba.network import parse_address


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"]
)
def test_addresses_are_checked(address):
    with pytest.raises(ValueError, match="HOST:PORT is required"):
        parse_address(address, tls=True)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "192.168.0.1:1", "[::]:1", "example.org:1"])
def test_addresses_that_others_reach_need_tls(address):
    with pytest.raises(ValueError, match="TLS is required"):
        parse_address(address, tls=False)
    assert parse_address(address, tls=True)[1] == 1


def test_loopback_needs_no_tls():
    assert parse_address("localhost:1", tls=False) == ("localhost", 1)
    assert parse_address("[::1]:1", tls=False) == ("::1", 1)


def test_tls_is_modern_and_mutual():
    import ssl

    context = tls_context(certificates_of(["comp", "owner-0"])["comp"], server=True)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
