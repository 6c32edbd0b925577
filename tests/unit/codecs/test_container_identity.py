"""The key of a container before the runtime assigns an id, and the annotation that carries it."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import (
    GPU,
    ContainerAllocation,
    ContainerKey,
    ContainerName,
    Kind,
    PodUid,
)
from partage_plugins.codecs import container_key, decode_container, encode_container
from partage_plugins.errors import DecodeError
from unit.codecs import documents, strategies
from unit.codecs.documents import container, text_of


def test_the_key_is_the_beginning_of_a_hash_over_uid_name_and_attempt() -> None:
    by_hand = hashlib.sha256(b"8f6b1a52-6f1e-4c3e-9b39-8a1a1f0c2d11/main/0").hexdigest()[:32]
    assert container_key(PodUid(documents.POD), ContainerName("main"), 0) == by_hand


def test_the_key_never_changes_between_releases() -> None:
    """Nodes are upgraded while containers run, so the expected value is a literal, not computed by our code."""
    assert container_key(PodUid("u"), ContainerName("c"), 0) == "8afcf82a54e64211f258aa52da5e5df2"


@given(strategies.pod_uids, strategies.container_names, st.integers(0, 2**31))
def test_every_key_is_one_that_readers_allow(pod: PodUid, name: ContainerName, attempt: int) -> None:
    key = container_key(pod, name, attempt)
    assert decode_container(text_of(container(key=key)), ()).key == key
    assert container_key(pod, name, attempt + 1) != key


@pytest.mark.parametrize("key", ["", "0" * 31, "0" * 33, "g" * 32, "A" * 32, "0" * 31 + "\n", "0" * 32 + "\n"])
def test_a_key_is_32_lower_case_hex_digits(key: str) -> None:
    with pytest.raises(DecodeError, match=r"\$\.key is .*; allowed: 32 lower-case hex digits"):
        decode_container(text_of(container(key=key)), ())


def test_an_unknown_kinds_grants_stay_as_they_were_written() -> None:
    text = text_of(container()).replace('"gpu":', '"npu": [ 1e2 ],"gpu":')
    decoded = decode_container(text, (GPU,))
    again = decode_container(encode_container(decoded), (GPU,))
    for each in (decoded, again):
        raw = each.grants[Kind("npu")]
        assert isinstance(raw, msgspec.Raw)
        assert bytes(raw) == b"[ 1e2 ]"
        assert [grant.share_milli for grant in each.of(GPU)] == [500]


def test_a_wrong_grant_is_named_with_its_path() -> None:
    with pytest.raises(DecodeError, match=r"container annotation: \$\.grants\.gpu\[0\]\.limit is 1001"):
        decode_container(text_of(container(grants={"gpu": [documents.gpu_grant(limit=1001)]})), (GPU,))


def test_an_annotation_too_large_to_be_read_is_not_written() -> None:
    grants = {Kind("npu"): msgspec.Raw(b'"' + b"x" * 262144 + b'"')}
    with pytest.raises(DecodeError, match=r"container annotation: .* allowed: at most 262144 bytes"):
        encode_container(ContainerAllocation(key=ContainerKey("0" * 32), gen=1, grants=grants))


@given(strategies.container_allocations)
def test_what_is_written_reads_as_the_same(carried: ContainerAllocation) -> None:
    text = encode_container(carried)
    again = decode_container(text, (GPU,))
    assert (again.key, again.gen, again.of(GPU)) == (carried.key, carried.gen, carried.of(GPU))
    assert encode_container(again) == text
