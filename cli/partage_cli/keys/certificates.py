"""The extender's certificates: its own CA, what that issues, and when to renew. Pure, but for key generation.

The CA's key is kept, in a Secret that nothing mounts: without it every renewal would need another CA, and so another
copy on each control plane where kube-scheduler is not a pod. Whoever can read Secrets of this namespace can read the
caller's key beside it, so the CA's key gives no further access. Another CA is added two years before the last one ends.
It is trusted at once, but signs only when the old one would not outlive the new certificate: so every copy of the CA
bundle that is made within that year is valid on both sides.

ECDSA on P-256: fast, and supported by every kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
CA: Final = "ca.crt"
AUTHORITY_LIFE: Final = timedelta(days=3650)
LIFE: Final = timedelta(days=365)
RENEWED_BEFORE: Final = LIFE / 3
_CLOCKS_DIFFER_BY: Final = timedelta(minutes=5)
_NAME: Final = "partage-extender-authority"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Subject:
    """The subject of a certificate: a server with DNS names, or a client without any."""

    common_name: str
    names: tuple[str, ...] = ()


def new_authority(now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(_NAME)
    own = (
        _started(name, name, key.public_key(), now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(own.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), _pem(key))


def authority_files(pair: Pair) -> dict[str, bytes]:
    """Its files in the Secret, which has those of other CAs too."""
    number = f"{_read(pair.certificate).serial_number:040x}"
    return {f"{number}.crt": pair.certificate, f"{number}.key": pair.key}


def authorities_in(files: Mapping[str, bytes]) -> tuple[Pair, ...]:
    """The CAs in a Secret, the oldest first."""
    pairs = [
        Pair(content, files[f"{name.removesuffix('.crt')}.key"])
        for name, content in files.items()
        if name.endswith(".crt") and f"{name.removesuffix('.crt')}.key" in files
    ]
    return tuple(sorted(pairs, key=lambda pair: _read(pair.certificate).not_valid_before_utc))


def needs_another(authorities: Sequence[Pair], now: datetime) -> bool:
    """Whether the newest would soon not outlive what it signs."""
    return not authorities or _read(authorities[-1].certificate).not_valid_after_utc < now + 2 * LIFE


def bundle(authorities: Sequence[Pair], now: datetime) -> bytes:
    """The certificates of all CAs that are valid now."""
    return b"".join(pair.certificate for pair in authorities if _read(pair.certificate).not_valid_after_utc > now)


def issued(authorities: Sequence[Pair], subject: Subject, now: datetime) -> Pair:
    """A new key with a certificate from the oldest CA that outlives it, since that one is known everywhere."""
    end = now + LIFE
    signer = next(pair for pair in authorities if _read(pair.certificate).not_valid_after_utc >= end)
    authority, key = _read(signer.certificate), ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _started(_name(subject.common_name), authority.subject, key.public_key(), now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_use(subject)]), critical=False)
        .add_extension(_issuer_id(authority), critical=False)
    )
    if subject.names:
        names = x509.SubjectAlternativeName(map(x509.DNSName, subject.names))
        certificate = certificate.add_extension(names, critical=False)
    signed = certificate.sign(_private(signer.key), hashes.SHA256())
    return Pair(signed.public_bytes(Encoding.PEM), _pem(key))


def why_renew(pair: Pair, subject: Subject, authorities: Sequence[Pair], now: datetime) -> str:
    """Why a certificate must be replaced; empty if it is valid."""
    try:
        found, key = _read(pair.certificate), _private(pair.key)
    except ValueError:
        return "it can't be read"
    if _spki(found.public_key()) != _spki(key.public_key()):
        return "its key is another's"
    if found.subject != _name(subject.common_name) or _names(found) != subject.names:
        return "it is for another name"
    if not any(_is_issued_by(found, _read(each.certificate)) for each in authorities):
        return "it is of another authority"
    if found.not_valid_after_utc - now < RENEWED_BEFORE:
        return f"it ends on {found.not_valid_after_utc:%Y-%m-%d}"
    return ""


def _started(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(end)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(found.value.get_values_for_type(x509.DNSName))


def _use(subject: Subject) -> x509.ObjectIdentifier:
    return ExtendedKeyUsageOID.SERVER_AUTH if subject.names else ExtendedKeyUsageOID.CLIENT_AUTH


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _issuer_id(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    own = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _private(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("no key of an elliptic curve")  # noqa: TRY004  (as one that can't be read)
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _spki(key: object) -> bytes:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return b""
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
