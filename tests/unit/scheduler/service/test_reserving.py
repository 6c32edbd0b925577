"""A whole scheduler reserves cards from kubelet for pending pods and returns them; no crash leaves anything behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from partage_plugins.api import Inventory
from partage_plugins.api.gpu import RESERVATIONS
from partage_plugins.api.keys import ALLOCATION, INVENTORY
from partage_scheduler.placement import reserver
from support.fake_api import FakeApi, Refuse
from support.fake_objects import Change
from support.gpu_fleet import card
from support.kube import until
from support.objects import of_cards, written
from support.scheduler_stage import LEASES, NODES, Truth, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS

CARDS = 3
LEAD = f"{LEASES}/partage-scheduler"
RESERVED = f"/api/v1/namespaces/{RESERVATIONS}/pods"
RESOURCE = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the reserver look at once, and return cards after a moment."""
    monkeypatch.setattr(reserver, "EVERY_S", 0.02)
    monkeypatch.setattr(reserver, "REST_S", 0.02)


class Kubelet:
    """kubelet, kube-scheduler and advertiser of n1: a pod that requests a card gets one, and the inventory names it."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api
        self.free = [f"n1-{place}" for place in range(CARDS)]
        self.has: dict[str, str] = {}
        self.is_silent = False
        add_node(api, "n1", self._inventory(), **{RESOURCE: str(CARDS)})

    def sees(self) -> None:
        """Handle all changes since the last call."""
        pods = {pod["metadata"]["name"]: pod for pod in self._api.objects.select(RESERVED, {})}
        for name in [name for name in self.has if name not in pods]:
            self.free.append(self.has.pop(name))
        for name in pods.keys() - self.has.keys():
            if self.free and not self.is_silent:
                self.has[name] = self.free.pop()
                self._api.objects.patch(
                    f"{RESERVED}/{name}", {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
                )
        notes = {INVENTORY: written(self._inventory())}
        self._api.objects.patch(f"{NODES}/n1", {"metadata": {"annotations": notes}})

    def _inventory(self) -> Inventory:
        by_card = {held: f"{RESERVATIONS}/{name}" for name, held in self.has.items()}
        cards = tuple(
            card(name, pool="shared" if name in by_card else "kubelet", reservation=by_card.get(name))
            for name in (f"n1-{place}" for place in range(CARDS))
        )
        return of_cards(cards, reservable=True)


def reservations(api: FakeApi) -> list[str]:
    return [pod["metadata"]["name"] for pod in api.objects.select(RESERVED, {})]


def settings(root: Path, **more: Any) -> Any:
    return settings_below(root, reserve_image="pause", **{"reserve_quiet_s": 1.0, **more})


async def until_seen(kubelet: Kubelet, true: Callable[[], bool]) -> None:
    """Wait for `true` while kubelet runs."""

    def looked() -> bool:
        kubelet.sees()
        return true()

    await until(looked)


@contextmanager
def never_on_a_card_without_its_reservation(api: FakeApi) -> Generator[list[str]]:
    """Check that a card has a reservation, not being deleted, at the moment when a pod is bound to it."""
    wrong: list[str] = []
    yield wrong
    there: dict[str, str] = {}
    for change in api.objects.history:
        _follow(change, there, wrong)
    assert not wrong


def _follow(change: Change, there: dict[str, str], wrong: list[str]) -> None:
    name = change.object["metadata"]["name"]
    if change.path.startswith(RESERVED):
        there.pop(name, None) if change.kind == "DELETED" else there.update({name: name})
    was_bound = bool((change.before or {}).get("spec", {}).get("nodeName"))
    if change.path.startswith(PODS) and change.object["spec"].get("nodeName") and not was_bound:
        allocation = json.loads(change.object["metadata"]["annotations"][ALLOCATION])
        if allocation["containers"] and not there:
            wrong.append(name)


@pytest.mark.slow
async def test_cards_come_for_pods_that_wait_and_go_back_after_them(api: FakeApi, tmp_path: Path) -> None:
    kubelet = Kubelet(api)
    for number, milli in enumerate((500, 500, 1000)):
        add_pod(api, f"p{number}", milli)
    with never_on_a_card_without_its_reservation(api):
        async with scheduler(api, settings(tmp_path)):
            await until_seen(kubelet, lambda: not unbound(api))
            assert len(reservations(api)) == 2
            for number in range(2):
                api.objects.delete(f"{PODS}/p{number}")
            await until_seen(kubelet, lambda: len(reservations(api)) == 1)
            api.objects.delete(f"{PODS}/p2")
            await until_seen(kubelet, lambda: not reservations(api) and len(kubelet.free) == CARDS)
    assert Truth(api, tmp_path).check()["bound"] == 3


@pytest.mark.slow
async def test_what_the_one_before_left_behind_goes_on_and_leaves(api: FakeApi, tmp_path: Path) -> None:
    kubelet = Kubelet(api)
    add_pod(api, "p", 500)
    async with scheduler(api, settings(tmp_path)):
        await until_seen(kubelet, lambda: not unbound(api))
    api.objects.delete(LEAD)  # as if it had expired
    add_pod(api, "q", 500)
    async with scheduler(api, settings(tmp_path)):
        await until_seen(kubelet, lambda: not unbound(api))
        assert len(reservations(api)) == 1
        for name in ("p", "q"):
            api.objects.delete(f"{PODS}/{name}")
    api.objects.delete(LEAD)
    async with scheduler(api, settings(tmp_path)):
        await until_seen(kubelet, lambda: not reservations(api))


@pytest.mark.slow
async def test_what_the_api_server_refuses_is_asked_again(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserver, "AGAIN_S", 0.05)
    kubelet = Kubelet(api)
    api.expect(Refuse(status=403, reason="Forbidden"), method="POST", under=RESERVED, times=2)
    api.expect(Refuse(status=500, reason="InternalError"), method="DELETE", under=RESERVED, times=2)
    add_pod(api, "p", 500)
    async with scheduler(api, settings(tmp_path)):
        await until_seen(kubelet, lambda: not unbound(api))
        api.objects.delete(f"{PODS}/p")
        await until_seen(kubelet, lambda: not reservations(api))


async def test_without_an_image_kubelet_keeps_its_cards(api: FakeApi, tmp_path: Path) -> None:
    Kubelet(api)
    add_pod(api, "p", 500)
    async with scheduler(api, settings_below(tmp_path)) as running:
        assert running.parts.reserver is None
        await until(lambda: running.parts.figures.attempts["unschedulable"] > 0)
    assert not api.count("", RESERVED)


async def test_for_a_pod_that_waits_on_a_silent_kubelet_it_asks_once(api: FakeApi, tmp_path: Path) -> None:
    kubelet = Kubelet(api)
    kubelet.is_silent = True
    add_pod(api, "p", 500)
    async with scheduler(api, settings(tmp_path)) as running:
        await until_seen(kubelet, lambda: bool(reservations(api)))
        seen = api.count("GET", RESERVED)
        await until(lambda: api.count("GET", RESERVED) > seen + 5)
        assert len(reservations(api)) == 1
        assert not running.failures
