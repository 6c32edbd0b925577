"""`soak hostile` can fail: the patches that remove mechanisms still apply, and its judges detect violations."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any, cast

import pytest

from partage_base.daemon.health import Health
from partage_base.daemon.metrics import Metrics
from partage_base.daemon.web import Web
from partage_base.kube import ApiServer
from partage_scheduler.api.binder import Binder
from partage_scheduler.objects import ApiPod, Meta
from partage_scheduler.queue import Queue
from rig.rig import CHECKOUT
from soak.siege.attacker import Attacker
from soak.siege.brokered import Asked, Brokered
from soak.siege.card import Reading, SharedCard
from soak.siege.copies import edited
from soak.siege.innocents import NAMESPACE
from soak.siege.mechanisms import MECHANISMS
from soak.siege.observed import Moment, Notes, noted, observe
from soak.siege.ports import FAILURES, Answer, Port, Probe
from soak.siege.prober import probed
from soak.siege.verdicts import Verdict
from support.kube import until


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


def test_of_a_wait_the_scheduler_answers_for_what_it_had_a_processor_for() -> None:
    lines: list[str] = []
    moments = iter((Moment(1.0, 0.0), Moment(4.0, 2.5), Moment(5.0, 2.5)))
    notes = Notes(lines.append, lambda: next(moments))
    notes.turned()
    notes.heard("innocent-000001")  # received within a period of three seconds
    notes.heard("innocent-000001")
    notes.sent("innocent-000001")
    notes.sent("innocent-000001")  # retried, since the API server was busy
    assert noted("".join(lines)) == {"innocent-000001": pytest.approx(0.5)}


async def test_the_scheduler_notes_when_it_hears_of_an_innocent_and_when_it_binds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Queue, "offer", Queue.offer)
    monkeypatch.setattr(Binder, "bind", Binder.bind)
    lines: list[str] = []
    observe(Notes(lines.append))
    for namespace in (NAMESPACE, "other"):
        pod = ApiPod(metadata=Meta(name="innocent-000007", namespace=namespace, uid=namespace))
        Queue().offer(pod, 0.0)
        await Binder(cast("ApiServer", _Taking())).bind(pod, "n", {})
    assert list(noted("".join(lines))) == ["innocent-000007"]


class _Taking:
    async def create(self, *_: object, **__: object) -> None:
        """Accepts every object, as an API server."""


@pytest.mark.parametrize(
    ("took_s", "waited_s", "is_answered", "fails"),
    [
        (0.2, 0.0, True, False),
        (3.0, 2.5, True, False),
        (3.0, 0.5, True, True),
        (0.2, 0.0, False, True),
        (3.0, 0.5, False, True),
        (3.0, 2.5, False, False),
    ],
)
def test_a_probe_fails_by_what_the_daemon_had_a_processor_for(
    took_s: float, waited_s: float, *, is_answered: bool, fails: bool
) -> None:
    probe = Probe(Port("daemon", "127.0.0.1", 1))
    for _ in range(FAILURES):
        probe.heard(Answer("daemon", took_s=took_s, waited_s=waited_s, is_answered=is_answered))
    assert (probe.failed, probe.restarts) == ((FAILURES, 1) if fails else (0, 0))
    assert probe.answered == (0 if fails or not is_answered else FAILURES)
    assert probe.late == (FAILURES if took_s > 1 else 0)


@pytest.mark.slow
async def test_daemons_are_probed_over_their_ports() -> None:
    health = Health()
    async with Web("127.0.0.1:0", metrics=Metrics("test"), health=health) as web:
        probe = Probe(Port("daemon", "127.0.0.1", web.port, os.getpid()))
        asking = asyncio.create_task(probed([probe]))
        await until(lambda: probe.answered)
        health.dead("part", "hangs")
        await until(lambda: probe.failed)
        asking.cancel()
        await asyncio.wait([asking])


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
