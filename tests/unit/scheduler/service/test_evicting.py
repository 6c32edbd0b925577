"""A whole scheduler reports and evicts pods on lost cards, as disruption budgets allow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from partage_plugins.api.keys import INVENTORY
from partage_scheduler.placement import evictor
from support.fake_api import FakeApi, Refuse
from support.gpu_fleet import card
from support.kube import until
from support.objects import of_cards, written
from support.scheduler_stage import NODES, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS, stands

EVENTS = "/api/v1/namespaces/team/events"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the evictor look and retry at once."""
    monkeypatch.setattr(evictor, "EVERY_S", 0.02)
    monkeypatch.setattr(evictor, "AGAIN_S", 0.05)


def notes(api: FakeApi, reason: str) -> list[str]:
    return [event["message"] for event in api.objects.select(EVENTS, {}) if event["reason"] == reason]


def lose_cards(api: FakeApi) -> None:
    lost = of_cards(card(f"n1-{place}", health="lost") for place in range(2))
    api.objects.patch(f"{NODES}/n1", {"metadata": {"annotations": {INVENTORY: written(lost)}}})


def names(api: FakeApi) -> list[str]:
    return [pod["metadata"]["name"] for pod in api.objects.select(PODS, {})]


@pytest.mark.parametrize("evicts", [False, True])
async def test_pods_on_lost_cards_are_told_and_leave_where_the_operator_wants_it(
    api: FakeApi, tmp_path: Path, *, evicts: bool
) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 500)
    settings = settings_below(tmp_path, evict_lost=evicts, evict_after_s=0)
    async with scheduler(api, settings):
        await until(lambda: not unbound(api))
        lose_cards(api)
        await until(lambda: notes(api, "CardLost"))
        (note,) = notes(api, "CardLost")
        assert note.startswith("card n1-")
        assert ("evicted" in note) == evicts
        if evicts:
            await until(lambda: not names(api))
            await until(lambda: notes(api, "Evicted"))
        else:
            await asyncio.sleep(0.1)
            assert names(api) == ["p"]
            assert not api.count("POST", f"{PODS}/p/eviction")


async def test_while_a_budget_says_no_it_is_asked_again(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 500)
    api.expect(Refuse(429, "TooManyRequests"), method="POST", under=f"{PODS}/p/eviction", times=2)
    settings = settings_below(tmp_path, evict_lost=True, evict_after_s=0)
    async with scheduler(api, settings):
        await until(lambda: not unbound(api))
        uid = stands(api, "p").uid
        lose_cards(api)
        await until(lambda: not names(api))
        asked = [each for each in api.asked if each.path.endswith("/eviction")]
        assert len(asked) == 3
        assert all(uid.encode() in each.body for each in asked)
