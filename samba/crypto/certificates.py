"""TLS certificates for one run: one for each role, signed by an authority whose key exists only while it signs."""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fedbandit_envs.samba.crypto.keys import Certificate, Keyring
from fedbandit_envs.samba.crypto.libraries import require_extra

_AUTHORITY = "fedbandit authority"
_VALID = timedelta(days=30)
_CLOCKS_DIFFER_BY = timedelta(hours=1)


def issue_certificates(keyrings: Mapping[str, Keyring]) -> dict[str, Keyring]:
    """Returns the keyrings with a certificate in each, issued to the role's name and valid for 30 days."""
    require_extra()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign(_AUTHORITY, authority_key.public_key(), authority_key)
    certified = {}
    for role, keyring in keyrings.items():
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        certificate = Certificate(authority, _sign(role, key.public_key(), authority_key), pem.decode())
        certified[role] = replace(keyring, certificate=certificate)
    return certified


def _sign(subject: str, key: Any, authority_key: Any) -> str:
    """Returns a certificate for a subject's public key, signed by the authority, in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import NameOID

    def name(text: str) -> Any:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    is_authority = subject == _AUTHORITY
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(_AUTHORITY))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(now + _VALID)
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
    )
    return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def tls_context(certificate: Certificate, server: bool) -> ssl.SSLContext:
    """Returns a TLS context in which both sides must present a certificate of the run's authority.

    Host names are not checked, since a certificate is issued to a role's name, on whatever host the role runs; the
    connection compares that name.

    Args:
        certificate: The certificate of this side's role.
        server: Whether this side listens.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificate.authority)
    # The ssl module reads the own certificate from files only.
    with TemporaryDirectory() as folder:
        own, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        own.write_text(certificate.own)
        key.touch(0o600)
        key.write_text(certificate.key)
        context.load_cert_chain(own, key)
    return context
