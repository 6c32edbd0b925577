"""What a rig's certificates say: who, for how long, for what use, at which address."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from rig.identity.certificates import Authority, Pair, Use, signing_keys
from rig.identity.identities import Identities
from rig.identity.people import ADMIN, ALICE, Person, node
from rig.identity.proofs import Certified

IP = IPv4Address("198.18.0.1")
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def read(certificate: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate)


def issued(person: Person = ALICE, use: Use = Use.CLIENT, authority: Authority | None = None) -> x509.Certificate:
    return read(
        (authority or Authority("a")).issue(person, use, ips=[IP], names=["kubernetes.default.svc"]).certificate
    )


def values(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def extension(certificate: x509.Certificate, kind: type[x509.ExtensionType]) -> x509.ExtensionType:
    return certificate.extensions.get_extension_for_class(kind).value


@pytest.mark.parametrize(
    ("person", "user", "groups"),
    [
        (ADMIN, "partage-rig-admin", ["system:masters"]),
        (ALICE, "alice", ["team-a"]),
        (node("n1"), "system:node:n1", ["system:nodes"]),
        (Person("bob", ("a", "b")), "bob", ["a", "b"]),
        (Person("system:kube-scheduler"), "system:kube-scheduler", []),
    ],
)
def test_a_subject_is_a_user_and_its_groups(person: Person, user: str, groups: list[str]) -> None:
    certificate = issued(person)
    assert values(certificate, NameOID.COMMON_NAME) == [user]
    assert values(certificate, NameOID.ORGANIZATION_NAME) == groups


def test_lives_are_short_and_forgive_clocks_that_differ() -> None:
    certificate, now = issued(), datetime.now(UTC)
    assert certificate.not_valid_before_utc < now - timedelta(minutes=1)
    assert timedelta(days=1) < certificate.not_valid_after_utc - now <= timedelta(days=3)


@pytest.mark.parametrize(
    ("use", "allowed"), [(Use.CLIENT, [CLIENT]), (Use.SERVER, [SERVER]), (Use.BOTH, [CLIENT, SERVER])]
)
def test_a_certificate_is_good_for_its_use_alone(use: Use, allowed: list[x509.ObjectIdentifier]) -> None:
    certificate = issued(use=use)
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == allowed
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.key_cert_sign


def test_only_the_authority_is_one() -> None:
    authority = Authority("a")
    own, other = read(authority.certificate), issued(authority=authority)
    assert extension(own, x509.BasicConstraints) == x509.BasicConstraints(ca=True, path_length=0)
    assert extension(other, x509.BasicConstraints) == x509.BasicConstraints(ca=False, path_length=None)


def test_a_server_is_believed_at_its_addresses_and_names_alone() -> None:
    authority = Authority("a")
    server = issued(Person("kube-apiserver"), Use.SERVER, authority)
    policy = PolicyBuilder().store(Store([read(authority.certificate)]))
    policy.build_server_verifier(x509.IPAddress(IP)).verify(server, [])
    policy.build_server_verifier(x509.DNSName("kubernetes.default.svc")).verify(server, [])
    with pytest.raises(VerificationError):
        policy.build_server_verifier(x509.DNSName("localhost")).verify(server, [])


def test_another_authority_of_the_same_name_is_not_believed() -> None:
    server = issued(Person("kube-apiserver"), Use.SERVER, Authority("a"))
    policy = PolicyBuilder().store(Store([read(Authority("a").certificate)]))
    with pytest.raises(VerificationError):
        policy.build_server_verifier(x509.IPAddress(IP)).verify(server, [])


def test_keys_are_of_p256_and_belong_to_their_certificates() -> None:
    pair: Pair = Authority("a").issue(ALICE, Use.CLIENT)
    key = load_pem_private_key(pair.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert key.public_key() == read(pair.certificate).public_key()


def test_the_keys_of_service_accounts_are_a_pair() -> None:
    keys = signing_keys()
    private = load_pem_private_key(keys.private, password=None)
    assert private.public_key() == load_pem_public_key(keys.public)


def test_files_are_their_owners_alone_and_no_authoritys_key_is_among_them(tmp_path: Path) -> None:
    identities = Identities(tmp_path / "identity")
    found = [identities.admin.proof, identities.node("n1").proof, identities.kubelet_server("n1", IP)]
    found += [identities.etcd_server(IP), identities.etcd_client("kube-apiserver"), identities.account_keys]
    files = {file for each in found if isinstance(each, Certified) for file in (each.certificate, each.key)}
    assert {stat.S_IMODE(file.stat().st_mode) for file in identities.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(identities.folder.stat().st_mode) == 0o700
    assert set(identities.folder.iterdir()) == files | {identities.ca, identities.etcd_ca}


def test_etcds_authority_is_not_the_clusters(tmp_path: Path) -> None:
    """Or whoever has a certificate of the cluster could read every secret, past RBAC."""
    identities = Identities(tmp_path)
    etcd = read(identities.etcd_client("kube-apiserver").certificate.read_bytes())
    etcd.verify_directly_issued_by(read(identities.etcd_ca.read_bytes()))
    with pytest.raises(ValueError, match="does not match"):
        etcd.verify_directly_issued_by(read(identities.ca.read_bytes()))


def test_an_identity_is_made_once(tmp_path: Path) -> None:
    identities = Identities(tmp_path)
    before = identities.certified(ALICE).certificate.read_bytes()
    assert identities.certified(ALICE).certificate.read_bytes() == before


def test_a_kubelet_serves_as_its_node_at_its_address(tmp_path: Path) -> None:
    certificate = read(Identities(tmp_path).kubelet_server("n1", IP).certificate.read_bytes())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.IPAddress) == [IP]
    assert values(certificate, NameOID.COMMON_NAME) == ["system:node:n1"]
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [SERVER]
