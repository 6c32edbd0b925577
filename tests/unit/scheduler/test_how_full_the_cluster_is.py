"""Figures of the whole cluster: how much is allocated, and how fragmented the rest is."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import GPU, Allocation, CardId, ContainerName, GpuGrant, Inventory, NodeName, PodUid, Role
from partage_scheduler.cluster.fullness import Fullness, fullness
from support.gpu_fleet import GIB, card
from support.objects import of_cards

NODE = NodeName("n")


def node(*names: str, **fields: Any) -> Inventory:
    return of_cards(card(name, **fields) for name in names)


def grant(on: str, milli: int, role: Role = "app") -> GpuGrant:
    return GpuGrant(card=card(on).id, share_milli=milli, limit_milli=milli, memory_bytes=GIB, role=role)


def holding(*grants: GpuGrant) -> Allocation:
    containers = {ContainerName(f"c{place}"): {GPU.name: (each,)} for place, each in enumerate(grants)}
    return Allocation(gen=1, pod=PodUid("u"), node=NODE, containers=containers)


def test_an_empty_cluster_has_nothing_and_nothing_in_pieces() -> None:
    nothing = fullness(())
    assert nothing == Fullness()
    assert (nothing.share_given, nothing.memory_given, nothing.share_in_pieces) == (0, 0, 0)


def test_free_time_on_cards_in_use_is_in_pieces() -> None:
    full = fullness([(node("a", "b"), [holding(grant("a", 500))])])
    assert (full.cards, full.free_cards) == (2, 1)
    assert full.share_given == 0.25
    assert full.memory_given == 1 / 32
    assert full.share_in_pieces == 500 / 1500


def test_init_containers_use_the_room_of_those_after_them() -> None:
    full = fullness([(node("a"), [holding(grant("a", 700, "init"), grant("a", 400), grant("a", 100, "sidecar"))])])
    assert full.given_share_milli == 800


def test_lost_cards_and_those_that_kubelet_hands_out_are_left_out() -> None:
    held = [holding(grant("a", 500))]
    assert fullness([(node("a", health="lost"), held), (node("b", pool="kubelet"), ())]) == Fullness()


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 250), st.sampled_from(get_args(Role))), max_size=4))
def test_no_part_is_less_than_nothing_or_more_than_all(held: list[tuple[str, int, Role]]) -> None:
    full = fullness([(node(*"abcd"), [holding(*(grant(*each) for each in held))])])
    assert full.free_cards == 4 - len({CardId(name) for name, _, _ in held})
    for part in (full.share_given, full.memory_given, full.share_in_pieces):
        assert 0 <= part <= 1
