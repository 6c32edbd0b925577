"""Requirements of other systems' users beyond room: an idle card, a card that is not full, a model, an instance."""

from __future__ import annotations

import pytest

from partage_gpu.allocator import plugin as allocator
from partage_plugins.api import GpuRequest, Slot
from support.gpu_fleet import GIB, Fleet, ask, card, cards, grants_of, pod

EMPTY = ask(300, idle_cards=True)
LEFT_OVER = ask(0, gib=1, spare_share=True)
WAYS = pytest.mark.parametrize("few", [0, 12], ids=["in arrays", "one by one"])


@WAYS
def test_who_wants_an_empty_card_gets_none_that_holds_another(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "FEW", few)
    fleet = Fleet(cards("a", 2), policy="fgd+")
    assert fleet.place(pod(ask(10, cards=("a0",)))) == ["a0"]
    assert fleet.place(pod(EMPTY)) == ["a1"]
    assert fleet.why_not(pod(EMPTY)) == ["node(s) had too few cards that hold nothing else"]


def test_others_may_follow_who_wanted_an_empty_card() -> None:
    fleet = Fleet(cards("a", 1))
    assert fleet.place(pod(EMPTY)) == fleet.place(pod(ask(700))) == ["a0"]


def test_containers_of_a_pod_that_want_empty_cards_get_different_ones() -> None:
    fleet = Fleet(cards("a", 2))
    assert sorted(fleet.place(pod(EMPTY, EMPTY)) or []) == ["a0", "a1"]
    assert fleet.place(pod(EMPTY, EMPTY)) is None


def test_an_init_container_finds_the_card_of_its_own_pod_empty() -> None:
    fleet = Fleet(cards("a", 1))
    assert fleet.place(pod(EMPTY, EMPTY, roles=["init", "app"])) == ["a0", "a0"]
    assert Fleet(cards("a", 1)).place(pod(EMPTY, EMPTY, roles=["sidecar", "app"])) is None


def test_an_empty_card_is_kept_for_who_wants_it_where_the_first_choice_would_take_it() -> None:
    picky, easy = ask(100, idle_cards=True, models=("A10",)), ask(900)
    for policy in ("binpack", "spread", "topology"):
        fleet = Fleet([card("a0", model="A10"), card("a1")], policy=policy)
        assert sorted(fleet.place(pod(easy, picky)) or []) == ["a0", "a1"]


@pytest.mark.parametrize("named", ["NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB"])
def test_a_model_is_named_as_nvml_does_or_as_a_label_can(named: str) -> None:
    fleet = Fleet([card("a0", model="NVIDIA A100-PCIE-40GB"), card("a1", model="NVIDIA A100-SXM4-40GB")])
    assert fleet.place(pod(ask(100, models=(named,)))) == ["a1"]
    assert fleet.place(pod(ask(100, models_not=(named,)))) == ["a0"]


@WAYS
def test_who_asks_for_no_share_can_ask_that_some_is_left(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "FEW", few)
    fleet = Fleet(cards("a", 1), policy="fgd+")
    fleet.place(pod(ask(990, gib=1)))
    assert fleet.place(pod(LEFT_OVER)) == ["a0"]
    fleet.place(pod(ask(10, gib=1)))
    assert fleet.why_not(pod(LEFT_OVER)) == ["Insufficient GPU share"]
    assert fleet.place(pod(ask(0, gib=1))) == ["a0"]


def test_a_full_card_of_its_own_pod_is_full_too() -> None:
    full = ask(1000, gib=1)
    assert Fleet(cards("a", 1)).place(pod(full, LEFT_OVER)) is None
    assert Fleet(cards("a", 1)).place(pod(LEFT_OVER, full, roles=["app", "init"])) == ["a0", "a0"]


@pytest.mark.parametrize(("milli", "gib", "mib"), [(500, 16, 8192), (333, 10, 3409), (1000, 16, 16384), (0, 16, 0)])
def test_memory_as_a_part_of_the_card_is_rounded_down_to_whole_mebibytes(milli: int, gib: int, mib: int) -> None:
    fleet = Fleet(cards("a", 1, gib=gib))
    allocation = fleet.allocation(pod(ask(100, memory_milli=milli)), Slot(0))
    assert [grant.memory_bytes >> 20 for grant in grants_of(allocation)] == [mib]


def test_memory_as_a_part_of_the_card_is_of_each_card_as_large_as_it_is() -> None:
    fleet = Fleet([card("a0", gib=8), card("a1", gib=24)])
    allocation = fleet.allocation(pod(ask(100, memory_milli=500, count=2)), Slot(0))
    assert [grant.memory_bytes for grant in grants_of(allocation)] == [4 * GIB, 12 * GIB]


@pytest.mark.parametrize(
    ("request_", "fits"),
    [
        (ask(100, model_parts=("a100",)), [0]),
        (ask(100, model_parts=("v100", "A10-")), [1, 2]),
        (ask(100, model_parts_not=("tesla",)), [0, 1]),
        (ask(100, model_parts=("A10",), model_parts_not=("sxm4",)), [1]),
        (ask(100, model_parts=("H100",)), []),
    ],
)
def test_a_part_of_a_models_name_is_enough_in_any_case_of_letters(request_: GpuRequest, fits: list[int]) -> None:
    fleet = Fleet(
        cards("a", 1, model="NVIDIA A100-SXM4-40GB"),
        cards("b", 1, model="NVIDIA A10-24Q"),
        cards("c", 1, model="Tesla V100-PCIE-32GB"),
    )
    assert fleet.fitting(pod(request_)) == fits


def test_an_instance_of_a_card_or_a_whole_one_can_be_wished_for() -> None:
    instance = card("MIG-b", gib=5, mig_profile="1g.5gb", parent="GPU-b")
    fleet = Fleet(cards("a", 1), [instance])
    assert fleet.fitting(pod(ask(100, instances=True))) == [1]
    assert fleet.fitting(pod(ask(100, instances=False))) == [0]
    assert fleet.fitting(pod(ask(100))) == [0, 1]
