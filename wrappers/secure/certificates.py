"""Certificates for one run: an authority made for it, whose key is thrown away, and one certificate a role."""

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fedbandit_envs.wrappers.secure.keys import Certificate
from fedbandit_envs.wrappers.secure.libraries import require_extra

_VALID = timedelta(days=30)
_CLOCKS_DIFFER_BY = timedelta(hours=1)


def certify(roles: Iterable[str]) -> dict[str, Certificate]:
    """Makes a certificate for each role, in the role's name, valid for 30 days."""
    require_extra()
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign(
        "fedbandit authority", authority_key.public_key(), "fedbandit authority", authority_key, True
    )
    certificates = {}
    for role in roles:
        key = ec.generate_private_key(ec.SECP256R1())
        own = _sign(role, key.public_key(), "fedbandit authority", authority_key, False)
        certificates[role] = Certificate(authority, own, _private_pem(key))
    return certificates


def _sign(subject: str, key: Any, issuer: str, issuer_key: Any, authority: bool) -> str:
    """Returns a certificate in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import NameOID

    def name(text: str) -> Any:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(now + _VALID)
        .add_extension(
            x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _private_pem(key: Any) -> str:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def tls_context(certificate: Certificate, server: bool) -> ssl.SSLContext:
    """Returns a context in which both sides must show a certificate of the run's authority.

    Names are not checked here: a role's certificate is in the role's name, wherever it runs, and whoever is connected
    asks for it (:func:`peer_name`).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificate.authority)
    # The ssl module reads a role's own certificate from files only.
    with TemporaryDirectory() as folder:
        own, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        own.write_text(certificate.own)
        key.touch(0o600)
        key.write_text(certificate.key)
        context.load_cert_chain(own, key)
    return context


def peer_name(shown: dict[str, Any] | None) -> str:
    """Returns in whose name the certificate is that the other side has shown; empty where there is none."""
    subject = (shown or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""
