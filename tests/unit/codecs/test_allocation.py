"""A pod's allocation: decoded into types for known kinds, kept as it is for others."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given

from partage_plugins.api import (
    GPU,
    Allocation,
    CardId,
    ContainerName,
    Gang,
    GpuGrant,
    Kind,
    Namespace,
    NodeName,
    PodUid,
    Tags,
)
from partage_plugins.codecs import decode_allocation, decode_raw_grants, encode_allocation
from partage_plugins.codecs.allocation import decode_grants
from partage_plugins.errors import DecodeError
from unit.codecs import documents, strategies
from unit.codecs.documents import FPGA, allocation, text_of

MAIN = ContainerName("main")


def raws(allocation: Allocation) -> dict[tuple[str, str], bytes]:
    return {
        (name, kind): bytes(grant)
        for name, grants in allocation.containers.items()
        for kind, grant in grants.items()
        if isinstance(grant, msgspec.Raw)
    }


def test_the_contracts_example_becomes_typed_grants() -> None:
    decoded = decode_allocation(text_of(allocation()), (GPU,))
    assert (decoded.pod, decoded.node, decoded.gen, decoded.crit) == (documents.POD, "n1", 1, ())
    grant = decoded.of(GPU)[MAIN][0]
    assert (grant.card, grant.share_milli, grant.limit_milli) == (documents.card_ids(1)[0], 500, 1000)
    assert (grant.memory_bytes, grant.tags) == (8 * documents.GIB, Tags(exclusion="blue"))


def test_containers_without_a_grant_of_the_kind_are_left_out() -> None:
    containers = {"main": {"gpu": [documents.gpu_grant()]}, "idle": {"gpu": []}, "other": {}}
    decoded = decode_allocation(text_of(allocation(containers=containers)), (GPU,))
    assert set(decoded.of(GPU)) == {"main"}
    assert decoded.of(FPGA) == {}


def test_grants_of_unknown_kinds_are_kept_and_written_unchanged() -> None:
    text = text_of(allocation()).replace('"gpu":', '"npu":{"b": 2.0,\t"a": [ "\\u00e9" ]},"gpu":')
    decoded = decode_allocation(text, (GPU,))
    assert raws(decoded) == {("main", "npu"): b'{"b": 2.0,\t"a": [ "\\u00e9" ]}'}
    assert raws(decode_allocation(encode_allocation(decoded), (GPU,))) == raws(decoded)


def test_grants_as_they_were_written_are_without_kinds_that_give_nothing() -> None:
    kinds = '"a":1e999,"b":[ ],"c":{\n},"d":null,"e":[null],"f":""'
    text = f'{{"v":1,"gen":1,"pod":"p","node":"n","containers":{{"main":{{{kinds}}},"side":{{}}}}}}'
    written = decode_raw_grants(text)
    found = {name: {kind: bytes(raw) for kind, raw in given.items()} for name, given in written.items()}
    assert found == {"main": {"a": b"1e999", "e": b"[null]", "f": b'""'}, "side": {}}


def test_asking_for_grants_that_were_not_decoded_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="decoded without kind 'gpu'"):
        decode_allocation(text_of(allocation()), ()).of(GPU)


def test_grants_that_crossed_a_process_border_are_typed_there() -> None:
    raw = msgspec.Raw(text_of([documents.gpu_grant()]).encode())
    grants = decode_grants({GPU.name: raw}, (GPU,))
    assert isinstance(grants[GPU.name], tuple)
    with pytest.raises(DecodeError, match=r"\$\.gpu\[0\]\.share is 1001"):
        decode_grants({GPU.name: msgspec.Raw(text_of([documents.gpu_grant(share=1001)]).encode())}, (GPU,))


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"share": 501, "limit": 500}, "limit 500 is below share 501"),
        ({"share": -1}, "$.containers.main.gpu[0].share is -1; allowed: an integer from 0 to 1000"),
        ({"memory": 2**62 + 1}, "allowed: an integer from 0 to 4611686018427387904"),
        ({"card": ""}, "allowed: a card id"),
        ({"card": None}, "allowed: a card id"),
        ({"tags": {"exclusion": "-"}}, "$.containers.main.gpu[0].tags.exclusion"),
    ],
)
def test_a_grant_that_cannot_be_is_refused(change: dict[str, object], refusal: str) -> None:
    containers = {"main": {"gpu": [documents.gpu_grant(**change)]}}
    with pytest.raises(DecodeError) as refused:
        decode_allocation(text_of(allocation(containers=containers)), (GPU,))
    assert refusal in str(refused.value)


@pytest.mark.parametrize("missing", ["v", "gen", "pod", "node", "containers"])
def test_a_missing_field_is_named(missing: str) -> None:
    document = allocation()
    del document[missing]
    with pytest.raises(DecodeError, match=f"allowed: an object with the field `{missing}`"):
        decode_allocation(text_of(document), (GPU,))


def test_an_allocation_too_large_in_bytes_is_not_written() -> None:
    kinds = {Kind("npu"): msgspec.Raw(('"' + "é" * 131072 + '"').encode())}  # fewer characters than bytes are allowed
    large = Allocation(gen=1, pod=PodUid("p"), node=NodeName("n"), containers={MAIN: kinds})
    with pytest.raises(DecodeError, match="allowed: at most 262144 bytes"):
        encode_allocation(large)


def test_grants_without_tags_do_not_mention_them() -> None:
    grant = GpuGrant(card=CardId("c"), share_milli=0, limit_milli=1, memory_bytes=0)
    one = Allocation(gen=1, pod=PodUid("p"), node=NodeName("n"), containers={MAIN: {GPU.name: (grant,)}})
    written = json.loads(encode_allocation(one))
    assert written["containers"]["main"]["gpu"] == [{"card": "c", "share": 0, "limit": 1, "memory": 0}]


@given(strategies.allocations)
def test_what_is_written_reads_as_the_same(allocation: Allocation) -> None:
    text = encode_allocation(allocation)
    again = decode_allocation(text, (GPU,))
    assert (again.gen, again.crit, again.pod, again.node) == (
        allocation.gen,
        allocation.crit,
        allocation.pod,
        allocation.node,
    )
    assert (again.of(GPU), again.uses) == (allocation.of(GPU), allocation.uses)
    assert raws(again) == raws(allocation)
    assert encode_allocation(again) == text


def test_a_gang_is_read_and_an_allocation_without_one_says_nothing_of_it() -> None:
    said = {"namespace": "team", "name": "train", "size": 2}
    decoded = decode_allocation(text_of(allocation(gang=said)), (GPU,))
    assert decoded.gang == Gang(Namespace("team"), "train", 2)
    assert json.loads(encode_allocation(decoded))["gang"] == said
    assert "gang" not in json.loads(encode_allocation(decode_allocation(text_of(allocation()), (GPU,))))
