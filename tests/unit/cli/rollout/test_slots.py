"""Slots: taken by one, alive for as long as they are renewed, and judged by one's own clock alone."""

from __future__ import annotations

import pytest

from partage_base.kube import ApiServer, lease_path, leases_path
from partage_cli.rollout.slots import Slots
from support.fake_api import FakeApi

SYSTEM = "partage-system"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slots(server: ApiServer, clock: Clock) -> Slots:
    return Slots(server, namespace=SYSTEM, lease_s=60, clock=clock)


@pytest.fixture
def others(server: ApiServer, clock: Clock) -> Slots:
    """As another node sees them."""
    return Slots(server, namespace=SYSTEM, lease_s=60, clock=clock)


async def test_a_slot_is_taken_renewed_and_given_back(slots: Slots, others: Slots) -> None:
    assert await slots.held() == {}
    assert await slots.take(3, "n1")
    assert await others.held() == {3: "n1"}
    assert await slots.renew(3, "n1")
    await slots.give_back(3, "n1")
    assert await others.held() == {}
    assert await others.take(3, "n2")


async def test_of_two_who_saw_it_free_one_gets_it(slots: Slots, others: Slots) -> None:
    for each in (slots, others):
        await each.held()
    assert await slots.take(0, "n1")
    assert not await others.take(0, "n2")
    await slots.give_back(0, "n1")
    await slots.held()
    await others.held()
    assert await others.take(0, "n2")
    assert not await slots.take(0, "n1")
    assert not await slots.renew(0, "n1")


async def test_a_holder_that_does_not_renew_is_dead_after_a_while_of_our_own_time(
    slots: Slots, others: Slots, clock: Clock
) -> None:
    await slots.held()
    await slots.take(0, "n1")
    await others.held()
    clock.now += 59
    assert await others.is_held(0)
    await slots.renew(0, "n1")
    clock.now += 59
    assert await others.is_held(0)
    clock.now += 60
    assert not await others.is_held(0)
    assert await others.held() == {}
    assert await others.take(0, "n2")
    assert not await slots.renew(0, "n1")


async def test_times_in_a_lease_mean_nothing(api: FakeApi, slots: Slots, others: Slots, clock: Clock) -> None:
    await slots.held()
    await slots.take(0, "n1")
    path = lease_path(SYSTEM, "partage-rollout-0")
    api.objects.patch(path, {"spec": {"renewTime": "2000-01-01T00:00:00.000000Z"}})
    assert await others.held() == {0: "n1"}
    clock.now += 61
    api.objects.patch(path, {"spec": {"renewTime": "2099-01-01T00:00:00.000000Z"}})
    assert await others.held() == {0: "n1"}
    clock.now += 61
    assert await others.held() == {}


async def test_a_longer_lease_of_another_setting_is_kept_to(
    api: FakeApi, slots: Slots, others: Slots, clock: Clock
) -> None:
    await slots.held()
    await slots.take(0, "n1")
    api.objects.patch(lease_path(SYSTEM, "partage-rollout-0"), {"spec": {"leaseDurationSeconds": 300}})
    await others.held()
    clock.now += 299
    assert await others.held() == {0: "n1"}


async def test_a_lease_that_is_deleted_is_held_by_nobody(api: FakeApi, slots: Slots, others: Slots) -> None:
    await slots.held()
    await slots.take(0, "n1")
    await others.held()
    api.objects.delete(lease_path(SYSTEM, "partage-rollout-0"), {})
    assert not await others.is_held(0)
    assert await others.held() == {}
    assert not await slots.renew(0, "n1")
    await slots.give_back(0, "n1")


async def test_heartbeats_of_nodes_are_no_slots(api: FakeApi, slots: Slots) -> None:
    api.objects.create(leases_path(SYSTEM), {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}})
    assert await slots.held() == {}
