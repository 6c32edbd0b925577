"""Links are counted between every two cards, directly and through switches, equally in both directions."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml.snapshot import LinkedCard, links_between


def cards(*ends: Sequence[str | None]) -> dict[str, LinkedCard]:
    return {f"card-{place}": LinkedCard(f"pci-{place}", one) for place, one in enumerate(ends)}


def test_cards_without_links_have_none() -> None:
    assert links_between(cards([], [])) == {"card-0": {}, "card-1": {}}


def test_direct_links_are_counted() -> None:
    found = links_between(cards(["pci-1", "pci-1", "pci-2"], ["pci-0", "pci-0"], ["pci-0"]))
    assert found["card-0"] == {"card-1": 2, "card-2": 1}
    assert found["card-1"] == {"card-0": 2}


def test_all_cards_behind_switches_are_linked() -> None:
    found = links_between(cards(*([[None] * 18] * 8)))
    assert sum(len(one) for one in found.values()) == 56
    assert {count for one in found.values() for count in one.values()} == {18}


def test_a_card_with_fewer_links_to_the_switch_is_reached_by_those() -> None:
    assert links_between(cards([None] * 18, [None] * 12))["card-0"] == {"card-1": 12}


def test_a_card_beside_the_switch_is_not_linked_by_it() -> None:
    assert links_between(cards([None] * 4, [None] * 4, []))["card-2"] == {}


def test_ends_at_what_is_no_card_of_the_node_do_not_count() -> None:
    assert links_between(cards(["elsewhere"], [])) == {"card-0": {}, "card-1": {}}


@given(st.lists(st.integers(0, 18), max_size=16))
def test_links_through_switches_are_the_same_in_both_directions(counts: list[int]) -> None:
    found = links_between(cards(*[[None] * count for count in counts]))
    for one, links in found.items():
        assert one not in links
        assert all(found[other][one] == count > 0 for other, count in links.items())
