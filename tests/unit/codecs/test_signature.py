"""A signature is accepted only for exactly the signed text, by a key that the node knows."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import KeyId
from partage_plugins.codecs import decode_signature, key_id, sign, verify
from partage_plugins.errors import SignatureRefused
from unit.codecs.documents import allocation, text_of

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
KEYS = {key_id(PRIVATE.public_key()): PRIVATE.public_key()}
TEXT = text_of(allocation())
SIGNATURE = sign(TEXT, PRIVATE)
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def test_a_signed_text_is_believed() -> None:
    verify(TEXT, SIGNATURE, KEYS)


def test_a_signature_is_what_the_contract_says() -> None:
    public = PRIVATE.public_key()
    named, _, encoded = SIGNATURE.partition(":")
    assert named == hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16]
    public.verify(base64.b64decode(encoded, validate=True), b"partage-allocation-v1\n" + TEXT.encode())


def test_a_signature_over_the_text_without_its_domain_is_refused() -> None:
    bare = base64.b64encode(PRIVATE.sign(TEXT.encode())).decode()
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(TEXT, f"{key_id(PRIVATE.public_key())}:{bare}", KEYS)


@pytest.mark.parametrize("at", range(len(TEXT)))
def test_any_changed_character_of_the_text_refuses(at: int) -> None:
    changed = TEXT[:at] + chr(ord(TEXT[at]) ^ 1) + TEXT[at + 1 :]
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(changed, SIGNATURE, KEYS)


@pytest.mark.parametrize("at", range(len(SIGNATURE)))
def test_any_changed_character_of_the_signature_refuses(at: int) -> None:
    alphabet = "0123456789abcdef" if at < 16 else BASE64
    other = alphabet[(alphabet.find(SIGNATURE[at]) + 1) % len(alphabet)]
    with pytest.raises(SignatureRefused):
        verify(TEXT, SIGNATURE[:at] + other + SIGNATURE[at + 1 :], KEYS)


@pytest.mark.parametrize("text", ["", " " + TEXT, TEXT + "\n", TEXT + "\0", TEXT.replace(":1,", ": 1,")])
def test_a_text_that_means_the_same_but_is_not_the_same_is_refused(text: str) -> None:
    with pytest.raises(SignatureRefused, match="changed after it was signed"):
        verify(text, SIGNATURE, KEYS)


def test_another_pods_allocation_is_refused() -> None:
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(text_of(allocation(pod="another")), SIGNATURE, KEYS)


def test_an_unknown_key_is_named_with_what_to_do() -> None:
    foreign = sign(TEXT, OTHER)
    with pytest.raises(SignatureRefused, match=rf"key {foreign[:16]}, which this node does not trust.*keys\.d"):
        verify(TEXT, foreign, KEYS)


def test_a_known_keys_name_on_a_strangers_signature_is_refused() -> None:
    forged = SIGNATURE[:17] + sign(TEXT, OTHER)[17:]
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(TEXT, forged, KEYS)


def test_a_text_that_is_not_unicode_is_refused_and_no_fault() -> None:
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(TEXT + "\ud800", SIGNATURE, KEYS)


@pytest.mark.parametrize("last", sorted(set(BASE64) - set("AQgw")))
def test_bits_that_base64_ignores_must_be_zero(last: str) -> None:
    """86 digits carry 516 bits, 4 more than a signature has: without this check each signature has 16 spellings."""
    with pytest.raises(SignatureRefused, match="not canonical"):
        decode_signature(f"{'0' * 16}:{'A' * 85}{last}==")


def test_a_multiple_of_the_groups_order_added_to_a_signature_is_refused() -> None:
    """Anyone who sees an Ed25519 signature can vary it, unless the verifier requires the smallest form."""
    raw = bytearray(decode_signature(SIGNATURE)[1])
    order = 2**252 + 27742317777372353535851937790883648493
    raw[32:] = (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(TEXT, f"{SIGNATURE[:17]}{base64.b64encode(raw).decode()}", KEYS)


@pytest.mark.parametrize(
    "malformed",
    [
        "",
        ":",
        SIGNATURE[17:],
        SIGNATURE + "\n",
        " " + SIGNATURE,
        SIGNATURE.upper(),
        SIGNATURE[:-2],
        SIGNATURE[:-2] + "=",
        SIGNATURE + "=",
        SIGNATURE.replace(":", "::"),
        SIGNATURE[:17] + "-" * 86 + "==",
        SIGNATURE[:15] + SIGNATURE[16:],
        "\uff10" * 16 + SIGNATURE[16:],
        SIGNATURE[:40] + "\ud800" + SIGNATURE[41:],
        "A" * 262144,
    ],
)
def test_what_is_no_signature_says_what_one_looks_like(malformed: str) -> None:
    with pytest.raises(SignatureRefused, match="<16 hex digits>:<88 characters of base64>") as refused:
        decode_signature(malformed)
    assert len(str(refused.value)) < 600


@given(st.text(), st.binary(min_size=32, max_size=32))
def test_whatever_is_signed_verifies_with_that_key_alone(text: str, seed: bytes) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key()
    signature = sign(text, private)
    verify(text, signature, {**KEYS, key_id(public): public})
    with pytest.raises(SignatureRefused):
        verify(text + " ", signature, {key_id(public): public})


@given(st.binary(min_size=64, max_size=64), st.text("0123456789abcdef", min_size=16, max_size=16))
def test_a_decoded_signature_is_the_bytes_that_were_encoded(raw: bytes, key: str) -> None:
    assert decode_signature(f"{key}:{base64.b64encode(raw).decode()}") == (KeyId(key), raw)
