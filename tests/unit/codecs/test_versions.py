"""Old and new nodes run side by side for months; each reads what the other writes."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from partage_plugins.api import GPU, ContainerName, Kind, KindType
from partage_plugins.api.limits import Milli, Small
from partage_plugins.api.names import ShortText
from partage_plugins.codecs import decode_allocation, decode_container, decode_inventory, highest_common_version
from partage_plugins.codecs.allocation import VERSIONS
from partage_plugins.errors import DecodeError
from unit.codecs import documents
from unit.codecs.documents import allocation, gpu_grant, text_of

MAIN = ContainerName("main")


class NewerGrant(Struct, frozen=True, kw_only=True):
    """A grant of a later release: one more field, which older allocations lack."""

    card: ShortText
    share_milli: Milli = msgspec.field(name="share")
    swap: Small = 0


NEWER_GPU = KindType(name=Kind("gpu"), request=NewerGrant, grant=NewerGrant, part=NewerGrant)


def newer_scheduler(**changes: object) -> str:
    """The output of a later scheduler, with new fields at every level."""
    grant = gpu_grant(mode="time", swap=1024)
    containers = {"main": {"gpu": [grant], "npu": [{"core": 3}]}}
    return text_of(allocation(containers=containers, priority=7) | changes)


def test_an_older_node_reads_what_a_newer_scheduler_wrote() -> None:
    decoded = decode_allocation(newer_scheduler(), (GPU,))
    assert [grant.share_milli for grant in decoded.of(GPU)[MAIN]] == [500]


@pytest.mark.parametrize("name", ["priority", "gpu.mode", "npu.core", "gpu", "", "gpu.share_milli"])
def test_an_older_node_refuses_a_critical_field_that_it_does_not_know(name: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_allocation(newer_scheduler(crit=["gen", name]), (GPU,))
    assert refused.value.path in ("$.crit", "$.crit[1]")
    if name:
        assert f"'{name}', which this reader does not know" in str(refused.value)
        assert "gpu.share" in refused.value.allowed
        assert "upgrade partage on this node" in refused.value.allowed


@pytest.mark.parametrize("name", ["gen", "crit", "containers", "gpu.card", "gpu.share", "gpu.memory", "gpu.tags"])
def test_a_critical_field_that_the_reader_knows_is_no_reason_to_refuse(name: str) -> None:
    assert decode_allocation(newer_scheduler(crit=[name]), (GPU,)).crit == (name,)


def test_a_field_of_a_kind_that_the_reader_lacks_is_unknown() -> None:
    text = newer_scheduler(crit=["gpu.share"])
    decode_allocation(text, (GPU,))
    with pytest.raises(DecodeError, match="which this reader does not know"):
        decode_allocation(text, ())


def test_a_newer_node_reads_an_old_allocation() -> None:
    grants = decode_allocation(text_of(allocation()), (NEWER_GPU,)).of(NEWER_GPU)
    assert [(grant.share_milli, grant.swap) for found in grants.values() for grant in found] == [(500, 0)]


def test_a_newer_node_honours_what_an_older_one_must_refuse() -> None:
    text = newer_scheduler(crit=["gpu.swap"])
    assert decode_allocation(text, (NEWER_GPU,)).of(NEWER_GPU)[MAIN][0].swap == 1024
    with pytest.raises(DecodeError, match="upgrade partage"):
        decode_allocation(text, (GPU,))


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.0])
def test_another_version_of_any_document_is_refused_by_name(version: object) -> None:
    with pytest.raises(DecodeError, match=r"allocation: \$\.v is .*; allowed: 1$"):
        decode_allocation(text_of(allocation(v=version)), (GPU,))
    with pytest.raises(DecodeError, match=r"inventory: \$\.v is .*; allowed: 1$"):
        decode_inventory(text_of(documents.inventory() | {"v": version}), (GPU,))
    with pytest.raises(DecodeError, match=r"container annotation: \$\.v is .*; allowed: 1$"):
        decode_container(text_of(documents.container(v=version)), (GPU,))


def test_a_newer_advertisers_fields_are_ignored_at_every_level() -> None:
    document = documents.inventory()
    document["fabric"] = {"clique": 3}
    document["ready"]["dra"] = True
    document["reads"]["container"] = [1, 2]
    document["kinds"]["gpu"]["mps"] = False
    document["kinds"]["gpu"]["cards"][0]["ecc"] = {"errors": 1e9}
    plain = decode_inventory(text_of(documents.inventory()), (GPU,))
    assert decode_inventory(text_of(document), (GPU,)) == plain


def test_an_older_advertisers_inventory_promises_nothing_that_it_does_not_say() -> None:
    document = documents.inventory(links=False)
    document["ready"] = {"crishim": True}
    del document["reads"]
    decoded = decode_inventory(text_of(document), (GPU,))
    part = decoded.part(GPU)
    assert part is not None
    assert (decoded.ready.crishim, decoded.ready.broker) == (True, False)
    assert decoded.reads.allocation == (1,)
    assert part.links == ()
    del document["ready"]
    assert not decode_inventory(text_of(document), (GPU,)).ready.crishim


def test_the_reading_versions_of_a_newer_node_are_kept() -> None:
    document = documents.inventory() | {"reads": {"allocation": [2, 3, 1]}}
    assert decode_inventory(text_of(document), (GPU,)).reads.allocation == (2, 3, 1)


@pytest.mark.parametrize(
    ("theirs", "ours", "written"),
    [
        ([1], (1,), 1),
        ([1, 2], (1,), 1),
        ([2, 1], (1, 2), 2),
        ([2, 3], (1, 2), 2),
        ([2, 3], (1,), None),
        ([1], (1, 2), 1),
        ([], (1,), None),
        ([1], (), None),
        ([3, 1], (1, 2, 3, 4), 3),
    ],
)
def test_the_highest_version_that_both_know_is_written(
    theirs: list[int], ours: tuple[int, ...], written: int | None
) -> None:
    assert highest_common_version(theirs, ours) == written


def test_this_release_writes_version_1() -> None:
    assert VERSIONS == (1,)
    assert highest_common_version([1, 2]) == 1
    assert highest_common_version([2]) is None
