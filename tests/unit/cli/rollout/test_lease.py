"""A roll-out's Lease: one installer holds it while renewing it, judged by the observer's own clock alone."""

from __future__ import annotations

import pytest

from partage_base.kube import ApiServer, lease_path
from partage_cli.rollout.lease import NAME, RolloutLease
from support.fake_api import FakeApi

SYSTEM = "partage-system"
PATH = lease_path(SYSTEM, NAME)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lease(server: ApiServer, clock: Clock) -> RolloutLease:
    return RolloutLease(server, namespace=SYSTEM, lease_s=60, clock=clock)


@pytest.fixture
def others(server: ApiServer, clock: Clock) -> RolloutLease:
    """The Lease as another node sees it."""
    return RolloutLease(server, namespace=SYSTEM, lease_s=60, clock=clock)


async def test_of_two_who_saw_it_free_one_gets_it_until_it_gives_it_back(
    lease: RolloutLease, others: RolloutLease
) -> None:
    for again in (False, True):
        assert [await lease.holder(), await others.holder()] == ["", ""]
        assert await lease.take("n1")
        assert not await others.take("n2"), again
        assert await others.holder() == "n1"
        assert await lease.renew("n1")
        await others.give_back("n2")
        assert await lease.holder() == "n1", "only its own is given back"
        await lease.give_back("n1")
    await others.holder()
    assert await others.take("n2")
    assert not await lease.renew("n1")


async def test_a_holder_that_does_not_renew_is_dead_after_a_while_of_our_own_time(
    lease: RolloutLease, others: RolloutLease, clock: Clock
) -> None:
    await lease.take("n1")
    assert await others.holder() == "n1"
    clock.now += 59
    await lease.renew("n1")
    assert await others.holder() == "n1"
    clock.now += 59
    assert await others.holder() == "n1"
    clock.now += 1
    assert await others.holder() == ""
    assert await others.take("n2")
    assert not await lease.renew("n1")


async def test_times_in_a_lease_mean_nothing(
    api: FakeApi, lease: RolloutLease, others: RolloutLease, clock: Clock
) -> None:
    await lease.take("n1")
    for time in ("2000-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"):
        api.objects.patch(PATH, {"spec": {"renewTime": time}})
        assert await others.holder() == "n1"
        clock.now += 61
    assert await others.holder() == ""


async def test_a_longer_lease_of_another_setting_is_kept_to(
    api: FakeApi, lease: RolloutLease, others: RolloutLease, clock: Clock
) -> None:
    await lease.take("n1")
    api.objects.patch(PATH, {"spec": {"leaseDurationSeconds": 300}})
    await others.holder()
    clock.now += 299
    assert await others.holder() == "n1"


async def test_one_that_is_deleted_is_held_by_nobody(api: FakeApi, lease: RolloutLease, others: RolloutLease) -> None:
    await lease.take("n1")
    assert await others.holder() == "n1"
    api.objects.delete(PATH, {})
    assert await others.holder() == ""
    assert not await lease.renew("n1")
    await lease.give_back("n1")
    assert await others.take("n2")
