"""There is never more than one leader, and always one as long as a replica can lead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from partage_base.kube import ApiServer
from partage_scheduler.api.election import Elector
from partage_scheduler.candidate import LeaseTerms
from partage_scheduler.errors import LeadLost
from support.fake_api import Drop, FakeApi, Hang, Refuse
from support.kube import until

PATH = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/lead"
TERMS = LeaseTerms()
Candidates = Callable[[str], Elector]


class Time:
    """A clock that advances only while someone sleeps, so that a slow machine makes no test fail."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


TIME = Time()


@pytest.fixture
def candidate(server: ApiServer) -> Candidates:
    def named(name: str) -> Elector:
        return Elector(
            server, namespace="ours", name="lead", identity=name, terms=TERMS, clock=lambda: TIME.now, sleep=TIME.sleep
        )

    return named


async def passed(seconds: float) -> None:
    """Wait until `seconds` of the simulated time have passed."""
    at = TIME.now
    await until(lambda: TIME.now >= at + seconds)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def holder(api: FakeApi) -> str:
    return str(api.objects.get(PATH)["spec"].get("holderIdentity", ""))


async def test_the_first_one_leads_and_goes_on_leading(api: FakeApi, candidate: Candidates) -> None:
    one = candidate("one")
    run = asyncio.create_task(one.run())
    await one.gained()
    await passed(2 * TERMS.renew_s)
    assert one.leads
    assert holder(api) == one.leader == "one"
    assert api.count("PUT") >= 3
    await ended(run)


async def test_the_second_one_waits_until_the_first_one_is_late(api: FakeApi, candidate: Candidates) -> None:
    one, two = candidate("one"), candidate("two")
    runs = [asyncio.create_task(one.run())]
    await one.gained()
    runs.append(asyncio.create_task(two.run()))
    await until(lambda: two.leader == "one")
    await passed(2 * TERMS.lease_s)
    assert [one.leads, two.leads, two.leader] == [True, False, "one"]
    await ended(runs[0])  # without a release, as by SIGKILL
    await two.gained()
    assert not one.leads
    assert api.objects.get(PATH)["spec"]["leaseTransitions"] == 1
    await ended(runs[1])


async def test_a_lead_that_is_handed_back_is_taken_at_once(api: FakeApi, candidate: Candidates) -> None:
    one, two = candidate("one"), candidate("two")
    first = asyncio.create_task(one.run())
    await one.gained()
    await one.release()
    for _ in range(100):
        await asyncio.sleep(0)
    assert not first.done()  # the caller of release() ends it
    await ended(first)
    assert [one.leads] == [False]
    assert not holder(api)
    second = asyncio.create_task(two.run())
    at = TIME.now
    await two.gained()
    assert TIME.now - at < TERMS.lease_s
    await ended(second)


@pytest.mark.parametrize(
    ("fault", "of_client"),
    [
        (Refuse(500), {}),
        (Hang(), {"deadline_s": 0.5}),
        (Drop(after_success=True), {}),
        (Refuse(409, "Conflict"), {}),
    ],
    ids=repr,
)
async def test_one_failure_costs_nothing(api: FakeApi, candidate: Candidates, fault: Drop | Hang | Refuse) -> None:
    one = candidate("one")
    run = asyncio.create_task(one.run())
    await one.gained()
    api.expect(fault, method="PUT")
    await passed(1.5 * TERMS.renew_s)
    assert one.leads
    assert not run.done()
    await ended(run)


async def test_who_can_not_renew_leads_no_more_before_another_one_may(api: FakeApi, candidate: Candidates) -> None:
    one = candidate("one")
    run = asyncio.create_task(one.run())
    await one.gained()
    api.expect(Refuse(500), times=10_000)
    at = TIME.now
    await until(lambda: not one.leads)
    assert TIME.now - at < TERMS.lease_s
    with pytest.raises(LeadLost, match="ours/lead"):
        await run


async def test_a_lease_that_somebody_takes_away_is_a_loss(api: FakeApi, candidate: Candidates) -> None:
    one = candidate("one")
    run = asyncio.create_task(one.run())
    await one.gained()
    api.objects.patch(PATH, {"spec": {"holderIdentity": "another"}})
    with pytest.raises(LeadLost, match="another holds it"):
        await run
