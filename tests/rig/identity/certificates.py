"""Certificates: a CA and what it issues. Pure except for random keys.

ECDSA on P-256, because signing is fast and a rig makes a dozen keys at its start. Lifetimes are short: files left by a
killed test run are useless after a few days. A CA's private key never leaves its process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from ipaddress import IPv4Address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rig.identity.people import Person

LIFE: Final = timedelta(days=3)
_CLOCKS_DIFFER_BY: Final = timedelta(minutes=5)


class Use(Enum):
    CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
    SERVER = (ExtendedKeyUsageOID.SERVER_AUTH,)
    BOTH = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH)
    """For etcd, which uses one certificate as server and as client of its peers."""


@dataclass(frozen=True)
class Pair:
    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class SigningKeys:
    """The keys with which the API server signs and verifies service account tokens; PEM."""

    private: bytes
    public: bytes


class Authority:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._own = self._started(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._own = self._own.add_extension(_key_usage(signs_certificates=True), critical=True)
        self.certificate = self._own.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def issue(self, person: Person, use: Use, *, ips: Sequence[IPv4Address] = (), names: Sequence[str] = ()) -> Pair:
        """A new key and its certificate; a server's is for these addresses and DNS names."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = [*map(x509.IPAddress, ips), *map(x509.DNSName, names)]
        certificate = (
            self._started(_subject(person), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(use.value), critical=False)
        )
        if alternatives:
            certificate = certificate.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        signed = certificate.sign(self._key, hashes.SHA256())
        return Pair(signed.public_bytes(Encoding.PEM), _private_pem(key))

    def _started(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCKS_DIFFER_BY)
            .not_valid_after(now + LIFE)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def signing_keys() -> SigningKeys:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return SigningKeys(private=_private_pem(key), public=public)


def _subject(person: Person) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in person.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, person.user)])


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """A CA signs certificates; everyone else signs handshakes, the only use of ECDSA here."""
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
