"""Pods with movable memory: placed, written, recounted, kept off old nodes, preempted and explained."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partage_plugins.api import GPU, Allocation, Reads, keys
from partage_plugins.codecs import CRIT, decode_allocation, encode_allocation
from partage_scheduler.cycle import Bind
from partage_scheduler.explanation import explain, stand
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Waiting
from support.objects import given, pod
from unit.scheduler.cluster.cards import carded
from unit.scheduler.preemption.stage import Preempted
from unit.scheduler.test_deciding_on_pods import NOW

ALL = Reads(crit=CRIT)
FIGURES = "card 16 GiB, beyond 16 GiB, promised {}, of which {} stay there, and a turn takes {}"


def asking(name: str, gib: int, *, movable: bool, notes: dict[str, str] | None = None, **fields: Any) -> ApiPod:
    limits = {keys.GPU_MEMORY: f"{gib}Gi", "memory": f"{gib}Gi"}
    said = {keys.MOVABLE: "yes" if movable else "no", **(notes or {})}
    requests = {"memory": "1Mi"}  # always available on the nodes here
    containers = [{"name": "main", "resources": {"limits": limits, "requests": requests}}]
    return pod(name, annotations=said, containers=containers, **fields)


def moving(name: str, gib: int, **more: Any) -> ApiPod:
    return asking(name, gib, movable=True, **more)


def staying(name: str, gib: int, **more: Any) -> ApiPod:
    return asking(name, gib, movable=False, **more)


def with_card(*pods: ApiPod, reads: Reads = ALL, beyond_gib: int = 16) -> Preempted:
    """A cluster of one node with one card."""
    stage = Preempted()
    stage.cluster.node(carded("m", "ok", beyond_gib=beyond_gib, memory="256Gi", reads=reads))
    stage.cluster.heartbeat("m", NOW, NOW)
    for each in pods:
        stage.cluster.pod(each)
    return stage


def bound(stage: Preempted, waiting: ApiPod) -> Allocation:
    (verdict,) = stage.cycle.decide(Waiting((waiting,)), NOW)
    assert isinstance(verdict, Bind), verdict
    return verdict.decision.allocation


def placed(name: str, gib: int, *, movable: bool, **more: Any) -> ApiPod:
    """A pod on the node, with what the scheduler wrote."""
    written = given(bound(with_card(), asking(name, gib, movable=movable)))
    return asking(name, gib, movable=movable, notes=written, node="m", **more)


def test_two_that_move_have_one_card_and_one_that_stays_has_what_is_beside_a_turn() -> None:
    stage = with_card()
    assert [stage.decides(moving(name, 12)) for name in "ab"] == ["m", "m"]
    assert stage.stays(staying("c", 5)).message == (
        f"0/1 nodes are available: 1 Insufficient GPU memory ({FIGURES.format('24 GiB', '1 GiB', '11.5 GiB')})."
    )
    assert stage.decides(staying("d", 3)) == "m"


def test_what_is_written_names_what_a_node_must_know() -> None:
    allocation = bound(with_card(), moving("a", 12))
    text = encode_allocation(allocation)
    assert json.loads(text)["crit"] == ["movable"]
    assert json.loads(text)["containers"]["main"]["gpu"][0]["movable"] is True
    assert decode_allocation(text, (GPU,)) == allocation
    plain = json.loads(encode_allocation(bound(with_card(), staying("b", 1))))
    assert (plain["crit"], "movable" in plain["containers"]["main"]["gpu"][0]) == ([], False)


def test_a_scheduler_that_starts_again_counts_the_same() -> None:
    there = [placed(name, 12, movable=True) for name in "ab"] + [placed("c", 3, movable=False)]
    stage = with_card(*there)
    assert stage.decides(staying("d", 1)) is None
    assert stage.decides(moving("d", 6)) is None
    assert stage.decides(moving("d", 5)) == "m"
    stage.cluster.pod_gone(there[2].uid)
    assert stage.decides(staying("e", 3)) == "m"


def test_a_setting_that_is_lowered_takes_nothing_from_who_is_there_and_lets_nobody_in() -> None:
    there = [placed(name, 12, movable=True) for name in "ab"]
    stage = with_card(*there)
    stage.cluster.node(carded("m", "ok", beyond_gib=0, memory="256Gi", version=2))
    assert stage.decides(moving("c", 1)) is None
    stage.cluster.pod_gone(there[0].uid)
    assert stage.decides(moving("c", 4)) == "m"


@pytest.mark.parametrize("reads", [Reads(), Reads(crit=("budgets",))])
def test_a_node_that_moves_nothing_takes_no_pod_that_moves(reads: Reads) -> None:
    stage = with_card(reads=reads)
    assert stage.stays(moving("a", 1)).message == (
        "0/1 nodes are available: 1 node(s) can't move memory off a card: upgrade partage there."
    )
    assert stage.decides(staying("b", 1)) == "m"


def test_who_moves_leaves_for_a_more_important_pod_that_stays() -> None:
    stage = with_card(placed("a", 12, movable=True), placed("b", 6, movable=True))
    assert stage.chosen(staying("new", 10, priority=9)) == ("m", ["a"])
    assert stage.decides(staying("fits", 3, priority=9)) == "m"


def test_a_pod_that_moves_displaces_only_as_many_as_it_takes() -> None:
    stage = with_card(placed("a", 12, movable=True), placed("b", 12, movable=True), placed("c", 3, movable=False))
    first = stage.chosen(moving("new", 12, priority=9))
    assert first in (("m", ["a"]), ("m", ["b"]))
    found = stage.chosen(moving("large", 16, priority=9))
    assert found is not None
    assert found[0] == "m"
    assert "c" in found[1]


def test_who_moves_leaves_for_another_also_where_more_stays_promised_than_the_card_has() -> None:
    there = [placed("a", 12, movable=True, priority=9), placed("b", 12, movable=True)]
    assert with_card(*there, beyond_gib=8).chosen(moving("new", 12, priority=5)) == ("m", ["b"])


def test_who_asks_is_told_what_is_promised_and_what_is_left_for_such_a_pod() -> None:
    there = [placed(name, 12, movable=True) for name in "ab"]
    stage = with_card(*there)
    (stays,) = explain(stage.cycle, staying("new", 5), NOW).nodes
    (card,) = stays.cards
    assert (card.memory_left_bytes >> 30, card.beyond_bytes >> 30, card.promised_bytes >> 30) == (3, 16, 24)
    figures = FIGURES.format("24 GiB", "1 GiB", "11.5 GiB")
    assert card.obstacles == (f"3584Mi of memory are left, 5120Mi are asked for ({figures})",)
    (huge,) = explain(stage.cycle, staying("new", 17), NOW).nodes
    assert huge.cards[0].obstacles == ("it has 16384Mi of memory in all, 17408Mi are asked for",)
    (moves,) = explain(stage.cycle, moving("new", 5), NOW).nodes
    assert (moves.cards[0].memory_left_bytes >> 30, moves.cards[0].obstacles) == (8, ())
    report = stand(stage.finder, there[0], NOW, lacking=lambda _pod: 0, flagged=stage.cluster.verified.flagged)
    assert [each.movable for each in report.given] == [True]


def test_the_most_that_would_fit_is_found_for_who_moves_too() -> None:
    stage = with_card(*(placed(name, 12, movable=True) for name in "ab"))
    changes = [each.change for each in explain(stage.cycle, moving("new", 9), NOW).helps]
    assert "container main: at most 8192Mi of a card's memory" in changes
