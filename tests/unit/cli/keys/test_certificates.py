"""The extender and its kube-scheduler trust each other, today and in ten years."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from partage_cli.keys.certificates import (
    AUTHORITY_LIFE,
    LIFE,
    Pair,
    Subject,
    authorities_in,
    authority_files,
    bundle,
    issued,
    needs_another,
    new_authority,
    why_renew,
)
from partage_scheduler.extender.callers import CallerTrust
from partage_scheduler.settings import CertificateFiles

NOW = datetime.now(UTC).replace(microsecond=0)
SERVER = Subject("extender.example", names=("extender.example", "extender.example.cluster.local"))
CLIENT = Subject("system:kube-scheduler")


def loaded(folder: Path, pair: Pair, trusted: bytes, *, server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    file = folder / ("server.pem" if server else "client.pem")
    file.write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(file)
    context.load_verify_locations(cadata=trusted.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str:
    """The client's name as the server verified it; raises `ssl.SSLError`."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(down, up, server_hostname=host), server.wrap_bio(up, down, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    certificate = ends[1].getpeercert(binary_form=True)
    assert certificate is not None
    (name,) = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(name.value)


@pytest.mark.parametrize("name", SERVER.names)
def test_both_sides_believe_each_other(tmp_path: Path, name: str) -> None:
    authorities = (new_authority(NOW),)
    trusted = bundle(authorities, NOW)
    server = loaded(tmp_path, issued(authorities, SERVER, NOW), trusted, server=True)
    client = loaded(tmp_path, issued(authorities, CLIENT, NOW), trusted, server=False)
    assert handshake(server, client, name) == "system:kube-scheduler"


def test_the_extender_answers_the_kube_scheduler_by_the_files_of_its_secret(tmp_path: Path) -> None:
    authorities = (new_authority(NOW),)
    trusted, served = bundle(authorities, NOW), issued(authorities, SERVER, NOW)
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    for file, content in ((files.certificate, served.certificate), (files.key, served.key), (files.callers, trusted)):
        file.write_bytes(content)
    trust = CallerTrust(files, ["system:kube-scheduler"])
    for caller, is_answered in ((CLIENT, True), (Subject("system:node:n1"), False)):
        client = loaded(tmp_path, issued(authorities, caller, NOW), trusted, server=False)
        name = handshake(trust.context, client, "extender.example")
        assert (trust.against({"subject": ((("commonName", name),),)}) is None) == is_answered


def test_nobody_else_is_believed(tmp_path: Path) -> None:
    ours, theirs = (new_authority(NOW),), (new_authority(NOW),)
    server = loaded(tmp_path, issued(ours, SERVER, NOW), bundle(ours, NOW), server=True)
    stranger = loaded(tmp_path, issued(theirs, CLIENT, NOW), bundle(ours, NOW), server=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, stranger, "extender.example")
    swapped = loaded(tmp_path, issued(ours, SERVER, NOW), bundle(ours, NOW), server=False)
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(server, swapped, "extender.example")


def test_a_copy_of_the_authorities_is_good_for_a_year_after_the_next_one_begins(tmp_path: Path) -> None:
    """The old one began long ago: both must be distinguishable, and it matters which of them signs when."""
    old = new_authority(NOW - AUTHORITY_LIFE + LIFE * 1.5)
    assert needs_another([old], NOW)
    both = (old, new_authority(NOW))
    assert not needs_another(both, NOW)
    copied = bundle(both, NOW)
    before, after = issued(both, SERVER, NOW), issued(both, SERVER, NOW + LIFE * 0.6)
    assert why_renew(before, SERVER, [old], NOW) == ""
    assert why_renew(after, SERVER, [old], NOW) == "it is of another authority"
    client = loaded(tmp_path, issued(both, CLIENT, NOW), copied, server=False)
    server = loaded(tmp_path, before, copied, server=True)
    assert handshake(server, client, "extender.example") == "system:kube-scheduler"


def test_an_authority_that_ended_is_trusted_no_more() -> None:
    old, new = new_authority(NOW - AUTHORITY_LIFE - timedelta(days=1)), new_authority(NOW)
    assert bundle((old, new), NOW) == new.certificate


def test_authorities_are_kept_with_their_keys_the_oldest_first() -> None:
    old, new = new_authority(NOW - LIFE), new_authority(NOW)
    files = {**authority_files(new), **authority_files(old), "half.crt": b"x"}
    assert authorities_in(files) == (old, new)


AUTHORITY = new_authority(NOW)
GOOD = issued((AUTHORITY,), SERVER, NOW)


@pytest.mark.parametrize(
    ("pair", "after", "said"),
    [
        (GOOD, timedelta(0), ""),
        (GOOD, LIFE * 0.6, ""),
        (GOOD, LIFE * 0.7, "it ends on"),
        (Pair(b"x", GOOD.key), timedelta(0), "it can't be read"),
        (Pair(GOOD.certificate, b""), timedelta(0), "it can't be read"),
        (Pair(GOOD.certificate, AUTHORITY.key), timedelta(0), "its key is another's"),
        (issued((AUTHORITY,), CLIENT, NOW), timedelta(0), "it is for another name"),
        (issued((new_authority(NOW),), SERVER, NOW), timedelta(0), "it is of another authority"),
    ],
    ids=["new", "young", "old", "garbage", "no key", "another's key", "another name", "another authority"],
)
def test_a_certificate_is_made_again_only_for_a_reason(pair: Pair, after: timedelta, said: str) -> None:
    why = why_renew(pair, SERVER, (AUTHORITY,), NOW + after)
    assert why.startswith(said)
    assert bool(why) == bool(said)
