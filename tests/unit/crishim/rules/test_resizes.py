"""A newer allocation of a running pod is verified, counted and put in force; older ones are refused afterwards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_plugins.api import GPU, Granted
from partage_plugins.api.places import RESIZES_FOLDER
from partage_plugins.errors import Refused
from support.extent import examples
from unit.crishim.rules.allocations import CARD, OTHER_CARD, allocation, grant, inventory, pod, write_newer
from unit.crishim.rules.stage import Crishim, Stage, enforced


def hand_over(stage: Stage, uid: str, gen: int, share: int, card: str = CARD) -> None:
    write_newer(stage.root, allocation(grant(card, share), pod=uid, gen=gen))


def look(crishim: Crishim) -> list[int]:
    """The gens that plugins were asked to put in force."""
    before = len(crishim.stage.fake.asked)
    asyncio.run(crishim.resizes.once())
    return [granted.gen for _, granted in crishim.stage.fake.asked[before:]]


def shares(granted: Granted) -> list[int]:
    raw = granted.grants[GPU.name]
    assert isinstance(raw, msgspec.Raw)
    return [grant["share"] for grant in json.loads(bytes(raw))]


def faults(stage: Stage) -> list[str]:
    found = [str(each) for each in stage.faults]
    stage.faults.clear()
    return found


def test_a_newer_allocation_is_put_in_force_once(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    hand_over(stage, "a", 2, 700)
    assert look(crishim) == [2]
    container, granted = stage.fake.asked[-1]
    assert (container.name, container.pod.name) == ("main", "trainer")
    assert shares(granted) == [700]
    assert look(crishim) == []
    assert look(stage.crishim()) == [], "nor by another crishim"
    assert not faults(stage)


def test_growth_counts_before_it_is_in_force_and_what_is_given_back_until_it_is(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    stage.fake.answer = Refused("partage: no broker answers")
    hand_over(stage, "a", 2, 700)
    look(crishim)
    assert "compute" in crishim.refusal(pod("b", grant(share=301)))
    hand_over(stage, "a", 3, 100)
    look(crishim)
    assert "compute" in crishim.refusal(pod("b", grant(share=301)))
    stage.fake.answer = enforced()
    assert look(crishim) == [3]
    crishim.rewrite(pod("b", grant(share=900)))


def test_what_others_hold_is_not_given_and_comes_as_soon_as_it_is_free(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    crishim.rewrite(pod("b", grant(share=600)))
    hand_over(stage, "a", 2, 700)
    assert look(crishim) == []
    assert "not enough compute" in faults(stage)[0]
    hand_over(stage, "b", 2, 200)
    assert look(crishim) == [2]
    assert look(crishim) == [2]


def test_an_older_allocation_is_refused_until_the_pod_ends(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    hand_over(stage, "a", 3, 100)
    look(crishim)
    faults(stage)
    for again in (crishim, stage.crishim()):
        hand_over(stage, "a", 2, 700)
        assert look(again) == []
        assert "older" in faults(stage)[0]
        assert "older" in again.refusal(pod("a", grant(share=300), attempt=1))
    again.rewrite(pod("a", grant(share=100), gen=3, attempt=1))
    stage.runtime.listed.clear()
    again.collect()
    assert not list((stage.root / "run/partage/crishim/records/regrants").iterdir())
    again.rewrite(pod("b", grant(share=1000)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"signature": "0f3a:AAAA"}, "signature"),
        ({"allocation": "{}"}, "signature"),
        ({"pod": {"namespace": "default", "name": "trainer", "uid": "b"}}, "another pod"),
        ({"pod": 7}, "can't be read"),
    ],
)
def test_what_does_not_verify_changes_nothing(stage: Stage, crishim: Crishim, change: dict[str, Any], why: str) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    hand_over(stage, "a", 2, 700)
    path = stage.root / RESIZES_FOLDER / "a.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert look(crishim) == []
    assert why in faults(stage)[0]
    crishim.rewrite(pod("b", grant(share=700)))


def test_other_cards_are_for_a_new_pod_alone(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    hand_over(stage, "a", 2, 300, card=OTHER_CARD)
    assert look(crishim) == []
    assert "other cards" in faults(stage)[0]


def test_a_container_that_starts_again_with_the_newer_one_has_it_already(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=300)))
    stage.runtime.listed.clear()
    crishim.rewrite(pod("a", grant(share=700), gen=2, attempt=1))
    hand_over(stage, "a", 2, 700)
    assert look(crishim) == []
    assert not faults(stage)


SHARES = st.sampled_from([100, 300, 500, 700, 900])


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), SHARES, st.sampled_from(["calm", "away", "killed"])), max_size=14))
def test_no_order_of_sizes_and_deaths_has_a_card_over(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]]
) -> None:
    """The limits in force, by the last calls to the broker, never exceed a card."""
    stage = Stage(root=Path(tmp_path_factory.mktemp("node")))
    stage.write_inventory(inventory())
    crishim, gens, force = stage.crishim(), dict.fromkeys("abc", 1), dict.fromkeys("abc", 100)
    for uid in "abc":
        crishim.rewrite(pod(uid, grant(share=100)))
    for uid, share, what in steps:
        gens[uid] += 1
        hand_over(stage, uid, gens[uid], share)
        stage.fake.answer = Refused("away") if what == "away" else enforced()
        asked = len(stage.fake.asked)
        asyncio.run(crishim.resizes.once())
        if what != "away":
            for container, granted in stage.fake.asked[asked:]:
                (force[str(container.pod.uid)],) = shares(granted)
        assert sum(force.values()) <= 1000, (steps, force)
        crishim = stage.crishim() if what == "killed" else crishim
