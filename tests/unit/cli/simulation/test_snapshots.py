"""Snapshots of live clusters: what is replayed, what stays, and what is skipped with a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.simulation.policies import decider_with
from partage_cli.simulation.snapshots import Snapshot, snapshot_of
from partage_cli.simulation.workloads import demand_milli
from partage_plugins import DecodeError
from partage_plugins.api import Resources
from partage_plugins.errors import PartageError, Refused
from support.gpu_fleet import card
from unit.cli.simulation.snapshots_made import holding, node, pod, printed

_, SIDE = decider_with("binpack")
N1 = node("n1", card("a"), card("b"))


def read(*objects: dict[str, Any]) -> Snapshot:
    return snapshot_of(printed(*objects), "now.json", SIDE)


def test_pods_that_ask_for_cards_are_the_workload_whether_they_run_or_wait() -> None:
    found = read(N1, holding("runs", 500, node="n1", card_id="a"), pod("waits", 250))
    assert [demand_milli(request) for request in found.workload.requests] == [500, 250]
    assert found.notes == ()


def test_what_is_allocated_now_is_told_beside_it() -> None:
    now = read(N1, holding("runs", 500, node="n1", card_id="a"), pod("waits", 250)).now
    assert (now.arrived, now.allocated) == (38, 25.0)


def test_other_pods_of_a_node_stay_and_their_room_is_gone() -> None:
    (found,) = read(N1, pod("asks", 500), pod("daemon", cpu="1500m", node="n1"), pod("far", cpu="4")).workload.nodes
    assert found.total == Resources(cpu_milli=6500, memory_bytes=64 << 30)


def test_pods_that_ended_hold_nothing() -> None:
    ended = pod("ended", 500, node="n1") | {"status": {"phase": "Succeeded"}}
    assert len(read(N1, pod("asks", 500), ended).workload.requests) == 1


def test_nodes_without_cards_of_ours_are_no_part_of_the_fleet() -> None:
    given_away = node("n2", card("c", pool="kubelet"), card("d", health="lost"))
    assert [each.name for each in read(N1, node("plain"), given_away, pod("asks", 500)).workload.nodes] == ["n1"]


@pytest.mark.parametrize(
    ("wrong", "note"),
    [
        (node("n2", text="{"), "node n2 is left out: inventory: $"),
        (
            pod("long", 500, annotations={f"a{number}": "" for number in range(1025)}),
            "pod default/long is left out: the pod has 1025 annotations",
        ),
        (pod("odd", 500, annotations={"partage.dev/exclusion": "?"}), "pod default/odd is left out: "),
        (
            holding("elsewhere", 500, node="n9", card_id="a"),
            "what pod default/elsewhere holds now is not counted: node n9 is not in the fleet",
        ),
        (
            pod("forged", 500, annotations={"alloc.partage.dev/allocation": "{}"}),
            "what pod default/forged holds now is not counted: allocation: $",
        ),
    ],
)
def test_what_cannot_be_read_is_left_out_and_told(wrong: dict[str, Any], note: str) -> None:
    found = read(N1, pod("asks", 500), wrong)
    (told,) = found.notes
    assert told.startswith(note)
    assert len(found.workload.nodes) == 1


def test_more_on_a_card_than_it_has_is_counted_once_and_told() -> None:
    found = read(N1, *(holding(name, 600, node="n1", card_id="a") for name in ("p1", "p2")))
    assert found.now.allocated == 30.0
    assert found.notes == ("what pod default/p2 holds now is not counted: card a has 400 milli left, not 600",)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([pod("asks", 500)], "now.json: no node has an inventory with cards to hand out"),
        ([N1, node("n2", card("a")), pod("asks", 500)], "now.json: card a is on nodes n1 and n2"),
    ],
)
def test_a_cluster_that_nothing_can_be_said_of_is_refused(objects: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(Refused) as refusal:
        read(*objects)
    assert str(refusal.value).startswith(why)


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"items":3}', b'{"items":[{"kind":"Pod"}]}', b"\xff", b"[" * 100_000])
def test_what_kubectl_never_prints_is_refused_with_the_files_name(raw: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^now\.json: "):
        snapshot_of(raw, "now.json", SIDE)


WHOLE = printed(N1, holding("runs", 500, node="n1", card_id="a"), pod("waits", 250), pod("plain", node="n1"))


@given(place=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255))
def test_one_wrong_byte_gives_a_workload_or_one_refusal(place: int, byte: int) -> None:
    raw = WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]
    try:
        found = snapshot_of(raw, "now.json", SIDE)
    except PartageError:
        return
    json.loads(raw)
    assert found.workload.nodes
