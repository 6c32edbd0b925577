"""MIG instances are placed where the hardware can hold them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_simgpu.errors import ProfileRefused
from partage_simgpu.mig import MEMORY_SLICES, Placed, placed
from partage_simgpu.profiles import load_profile

H200 = load_profile("h200")


def slices(instance: Placed) -> set[int]:
    return set(range(instance.start, instance.start + instance.profile.placements.size))


def test_the_largest_come_first_on_the_card() -> None:
    found = placed(H200, ("1g.18gb", "1g.18gb", "3g.71gb"))
    assert [(one.name, one.start) for one in found] == [("3g.71gb", 0), ("1g.18gb", 4), ("1g.18gb", 5)]


@pytest.mark.parametrize(
    "names",
    [
        ("1g.18gb",) * 7,
        ("1g.35gb",) * 4,
        ("2g.35gb",) * 3,
        ("2g.35gb", "2g.35gb", "2g.35gb", "1g.18gb"),
        ("3g.71gb", "3g.71gb"),
        ("3g.71gb", "4g.71gb"),
        ("7g.141gb",),
    ],
)
def test_layouts_that_nvidia_lists_fit(names: tuple[str, ...]) -> None:
    assert len(placed(H200, names)) == len(names)


@pytest.mark.parametrize(
    "names",
    [
        ("1g.18gb",) * 8,
        ("4g.71gb", "4g.71gb"),
        ("3g.71gb", "3g.71gb", "1g.18gb"),
        ("7g.141gb", "1g.18gb"),
        ("1g.35gb",) * 5,
    ],
)
def test_layouts_that_no_card_can_hold_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ProfileRefused, match="do not fit on one NVIDIA H200"):
        placed(H200, names)


def test_a_card_without_mig_says_so() -> None:
    with pytest.raises(ProfileRefused, match=r"NVIDIA L4 has no MIG profile 1g.5gb; it has none"):
        placed(load_profile("l4"), ("1g.5gb",))


@given(st.lists(st.sampled_from(sorted(H200.mig)), max_size=8))
def test_instances_that_are_placed_never_overlap_and_have_ids_of_their_own(names: list[str]) -> None:
    try:
        found = placed(H200, names)
    except ProfileRefused:
        return
    assert sorted(one.name for one in found) == sorted(names)
    assert sum(len(slices(one)) for one in found) == len(set().union(*map(slices, found)))
    assert all(slices(one) <= set(range(MEMORY_SLICES)) for one in found)
    assert all(one.start in one.profile.placements.starts for one in found)
    assert len({one.gpu_instance for one in found}) == len(found)
    assert sum(one.profile.slices for one in found) <= 7
