"""`soak hostile` can fail: what takes a mechanism out still fits the code, and its judges see what must not be."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from partage_base.kube import ApiServer
from partage_scheduler.objects import ApiPod, Meta
from rig.rig import CHECKOUT
from soak.siege.attacker import Attacker
from soak.siege.brokered import Asked, Brokered
from soak.siege.card import Reading, SharedCard
from soak.siege.copies import edited
from soak.siege.course import own_waits
from soak.siege.innocents import Pair
from soak.siege.mechanisms import MECHANISMS
from soak.siege.verdicts import Verdict


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_can_be_taken_out_of_the_code_as_it_is(name: str) -> None:
    for edit in MECHANISMS[name].edits:
        text = (CHECKOUT / edit.path).read_text()
        assert edited(text, edit) != text


def test_a_pod_that_says_too_much_must_not_be_placed() -> None:
    attacker = Attacker(cast("ApiServer", None), random.Random(0), [])  # noqa: S311 - no secret
    for name in ("labels-1", "excludes-2", "flood-3"):
        attacker.bound(ApiPod(metadata=Meta(name=name)))
    assert [each.verdict for each in attacker.wrong()] == [Verdict.EXCESS, Verdict.EXCLUSION]


def test_an_attacker_is_judged_by_the_window_in_which_it_had_most() -> None:
    card = SharedCard(*cast("Any", (None, None, None)))
    busy_ns = 0
    for second in range(60):
        busy_ns += 600_000_000 if 30 <= second < 35 else 0
        card.readings.append(Reading(second, 0, busy_ns))
    assert card.fullest() == pytest.approx(0.3, abs=0.03)


def test_what_a_twin_waits_longer_than_usual_is_not_the_schedulers() -> None:
    pairs = [Pair(0.0, waited_s=1.0, twin_s=0.8), Pair(1.0, waited_s=0.5, twin_s=0.01)]
    assert own_waits(pairs, usual_s=0.1) == pytest.approx([0.3, 0.5])


def test_a_flood_of_the_broker_is_judged_by_what_others_had_of_it() -> None:
    calm = [Asked(number / 10, 0.01, is_served=True) for number in range(100)]
    for took_s, is_served, wrong in ((0.5, True, 0), (5.0, True, 1), (0.01, False, 1)):
        brokered = Brokered(*cast("Any", (None, "", None)))
        brokered.asked = [*calm, *(Asked(10 + number / 10, took_s, is_served) for number in range(100))]
        assert [each.verdict for each in brokered.wrong(10.0)] == [Verdict.BROKER] * wrong


def test_a_flood_that_did_not_come_proves_nothing() -> None:
    brokered = Brokered(*cast("Any", (None, "", None)))
    assert len(list(brokered.unproved(10.0))) == 3
    brokered.asked = [Asked(at, 0.01, is_served=True) for at in (1.0, 11.0)]
    brokered.pieces, brokered.greetings = 1, 1
    assert list(brokered.unproved(10.0)) == []
