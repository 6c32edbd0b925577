"""Devices with the requested topology are found if there are any, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api.topology import Bundle, Levels
from partage_plugins.rules.topology import gathered

BOARD: Levels = {"numa": (0, 0, 0, 0, 1, 1, 1, 1), "pcie": (0, 0, 1, 1, 2, 2, 3, 3)}
ALL = range(8)


def meets(levels: Levels, places: frozenset[int], bundles: Sequence[Bundle]) -> bool:
    """Tries every set of devices for every bundle."""
    if not bundles:
        return True
    first, *others = bundles
    for group in set(levels[first.level]):
        inside = [place for place in places if levels[first.level][place] == group]
        for chosen in combinations(inside, first.count):
            if meets(levels, frozenset(chosen), first.parts) and meets(levels, places - set(chosen), others):
                return True
    return False


LEVELS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=8).map(
    lambda cards: {"numa": [numa for numa, _ in cards], "pcie": [pcie for _, pcie in cards]}
)
PAIRS = st.integers(1, 3).map(lambda count: Bundle("pcie", count))


@st.composite
def bundle(draw: st.DrawFn) -> Bundle:
    parts = tuple(draw(st.lists(PAIRS, max_size=2)))
    inside = sum(part.count for part in parts)
    return Bundle(draw(st.sampled_from(["numa", "pcie"])), max(1, inside + draw(st.integers(0, 2))), parts)


@given(LEVELS, st.sets(st.integers(0, 7)), st.lists(bundle(), max_size=3), st.integers(0, 2))
def test_what_is_found_is_what_trying_everything_finds(
    levels: Levels, held: set[int], bundles: list[Bundle], more: int
) -> None:
    free = [place for place in range(len(levels["numa"])) if place not in held]
    count = sum(each.count for each in bundles) + more
    found = gathered(levels, free, bundles, count)
    assert (found is not None) == (count <= len(free) and meets(levels, frozenset(free), bundles))
    if found is not None:
        assert len(found) == len(set(found)) == count
        assert set(found) <= set(free)
        assert meets(levels, frozenset(found), bundles)


def test_a_bundle_takes_the_smallest_group_that_will_do() -> None:
    assert gathered(BOARD, [0, 1, 2, 3, 6, 7], [Bundle("numa", 2)], 2) == (6, 7)


def test_of_equal_groups_the_devices_that_are_liked_best_are_taken() -> None:
    assert gathered(BOARD, [5, 4, 0, 1], [Bundle("pcie", 2)], 2) == (4, 5)
    assert gathered(BOARD, [3, 1, 0, 2], [Bundle("numa", 2)], 2) == (1, 3)


def test_parts_lie_inside_the_group_of_their_bundle() -> None:
    bundles = [Bundle("numa", 4, (Bundle("pcie", 2), Bundle("pcie", 2)))]
    assert gathered(BOARD, [0, 1, 2, 4, 5, 6, 7], bundles, 4) == (4, 5, 6, 7)
    assert gathered(BOARD, [0, 1, 2, 4, 5, 6], bundles, 4) is None


def test_a_level_that_the_node_does_not_know_is_never_met() -> None:
    assert gathered(BOARD, ALL, [Bundle("nvlink", 1)], 1) is None


def test_a_question_that_would_take_for_ever_is_given_up() -> None:
    """Sixty-three groups of three, from which more pairs are requested than there are groups."""
    groups = {"pcie": [place // 3 for place in range(189)]}
    assert gathered(groups, range(189), [Bundle("pcie", 2)] * 64, 128) is None


@pytest.mark.parametrize(
    "text",
    [
        '["pcie",0]',
        '["pcie",-1]',
        '["",2]',
        '["numa",2,[["pcie",2],["pcie",1]]]',
        '["numa",64,[' + ",".join(['["pcie",1]'] * 65) + "]]",
    ],
)
def test_a_bundle_that_makes_no_sense_is_none(text: str) -> None:
    level, count, *parts = msgspec.json.decode(text)
    built = {"level": level, "count": count, "parts": [{"level": at, "count": n} for at, n in (parts or [[]])[0]]}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(built, Bundle)
