"""Any bytes as a key file yield a key or raise KeyRefused, never anything else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from partage_base.keyring import KeyRefused
from partage_base.keyring.layout import marked
from partage_base.keyring.pem import decode_private, decode_public, encode_private, encode_public

FILE: Final = Path("/keys/file")
KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
GOOD: Final = [encode_private(KEY), encode_public(KEY.public_key())]
LABELS: Final = [b"PUBLIC KEY", b"PRIVATE KEY", b"ENCRYPTED PRIVATE KEY", b"EC PRIVATE KEY", b"CERTIFICATE", b""]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid key with a few bytes changed, removed or inserted."""
    pem = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(pem)))
        pem[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(pem)


@st.composite
def wrapped(draw: st.DrawFn) -> bytes:
    """Arbitrary bytes in a PEM envelope."""
    label, body = draw(st.sampled_from(LABELS)), draw(st.binary(max_size=80))
    return b"-----BEGIN %s-----\n%s\n-----END %s-----\n" % (
        label,
        draw(st.sampled_from([body, body.hex().encode()])),
        label,
    )


def refusal(decode: Callable[[bytes, Path], object], content: bytes) -> str | None:
    try:
        decode(content, FILE)
    except KeyRefused as refused:
        return str(refused)
    return None


@given(st.one_of(st.binary(max_size=200), damaged(), wrapped()))
def test_any_bytes_are_a_key_or_refused(content: bytes) -> None:
    refusals = [refusal(decode_public, content), refusal(decode_private, content)]
    assert any(refusals)  # no input is both kinds of key
    for told in filter(None, refusals):
        assert re.fullmatch("/keys/file: .+; allowed: .+", told)


@given(st.one_of(st.binary(max_size=40), st.from_regex(rb"\A\s?[0-9a-f]{15,17}\n?\Z")))
def test_any_bytes_are_a_marker_or_refused(content: bytes) -> None:
    if refusal(lambda content, file: marked(file, content), content) is None:
        assert len(content.strip()) == 16


@given(st.binary(min_size=32, max_size=32))
def test_every_key_reads_back_as_itself(seed: bytes) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    assert decode_private(encode_private(private), FILE).private_bytes_raw() == seed
    assert decode_public(encode_public(private.public_key()), FILE) == private.public_key()
