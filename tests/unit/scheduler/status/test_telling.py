"""What users are told about their pods, and how many calls that may cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from partage_base.kube import ApiServer
from partage_scheduler.api import Events, StatusWriter, Unplaced
from support.fake_api import FakeApi, Hang, Refuse
from support.kube import beside, until
from support.scheduling import PODS, create_pod, stands

WHY = "0/3 nodes are available: 3 Insufficient GPU share."
EVENTS = "/api/v1/namespaces/team/events"


async def _no_time(_seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
def outcomes() -> Counter[str]:
    return Counter()


@pytest.fixture
def every_s() -> float:
    return 0.0


@pytest.fixture
async def conditions(server: ApiServer, outcomes: Counter[str], every_s: float) -> AsyncIterator[StatusWriter]:
    conditions = StatusWriter(
        server, written=lambda outcome: outcomes.update([outcome]), every_s=every_s, sleep=_no_time
    )
    async with beside(conditions.run()):
        yield conditions


@pytest.fixture
def is_busy() -> bool:
    return False


@pytest.fixture
def normal_a_second() -> float:
    return 1000.0


@pytest.fixture
async def events(
    server: ApiServer, outcomes: Counter[str], *, is_busy: bool, normal_a_second: float
) -> AsyncIterator[Events]:
    events = Events(
        server,
        instance="s1",
        sent=lambda outcome: outcomes.update([outcome]),
        is_busy=lambda: is_busy,
        every_s=0.0,
        normal_a_second=normal_a_second,
        sleep=_no_time,
    )
    async with beside(events.run()):
        yield events


def events_of(api: FakeApi) -> list[dict[str, Any]]:
    return api.objects.select(EVENTS, {})


async def test_a_pod_that_waits_says_why(api: FakeApi, conditions: StatusWriter, outcomes: Counter[str]) -> None:
    pod = create_pod(api)
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: outcomes["done"])
    (condition,) = stands(api).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == WHY
    assert condition.last_transition_time


async def test_what_stands_there_is_not_written_again(
    api: FakeApi, conditions: StatusWriter, outcomes: Counter[str]
) -> None:
    pod = create_pod(api)
    for _ in range(2):
        conditions.tell(Unplaced(pod, WHY))
        await until(lambda: outcomes["done"])
    conditions.forget(pod.uid)  # as a scheduler that restarts
    conditions.tell(Unplaced(stands(api), WHY))
    assert not len(conditions)
    assert api.count("PATCH") == 1


@pytest.mark.parametrize("every_s", [1000])
async def test_what_changes_too_often_is_written_once_in_a_while(
    api: FakeApi, conditions: StatusWriter, outcomes: Counter[str]
) -> None:
    pod = create_pod(api)
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: outcomes["done"])
    for number in range(20):
        conditions.tell(Unplaced(pod, f"{WHY} {number}"))
        await asyncio.sleep(0)
    assert api.count("PATCH") == 1
    assert len(conditions) == 1


async def test_what_was_refused_is_written_later_and_the_latest_of_it(
    api: FakeApi, conditions: StatusWriter, outcomes: Counter[str]
) -> None:
    pod = create_pod(api)
    api.expect(Refuse(429), method="PATCH", times=2)
    conditions.tell(Unplaced(pod, "an old reason"))
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: outcomes["done"])
    assert outcomes["failed"] == 2
    assert stands(api).status.conditions[0].message == WHY


async def test_a_pod_that_is_gone_is_no_trouble(api: FakeApi, conditions: StatusWriter, outcomes: Counter[str]) -> None:
    pod = create_pod(api)
    api.objects.delete(f"{PODS}/p")
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: outcomes["gone"])
    assert not len(conditions)


async def test_who_binds_waits_for_what_is_being_written(
    api: FakeApi, conditions: StatusWriter, outcomes: Counter[str]
) -> None:
    pod, other = create_pod(api), create_pod(api, "other")
    api.expect(Hang(), method="PATCH")
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: api.count("PATCH"))
    conditions.tell(Unplaced(other, WHY))
    await conditions.settled(other.uid)  # it was not started, and will not be
    settling = asyncio.create_task(conditions.settled(pod.uid))
    await asyncio.sleep(0.01)
    assert not settling.done()
    api.release()
    await settling
    assert stands(api).status.conditions
    assert not stands(api, "other").status.conditions


async def test_a_pod_that_waits_has_an_event_that_counts(api: FakeApi, events: Events, outcomes: Counter[str]) -> None:
    pod = create_pod(api)
    for number in range(3):
        events.failed(pod, WHY)
        await until(lambda number=number: outcomes["sent"] + outcomes["counted"] == number + 1)  # type: ignore[misc]
    (event,) = events_of(api)
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert event["message"] == WHY
    assert event["involvedObject"]["uid"] == pod.uid
    assert event["reportingComponent"] == "partage-scheduler"
    assert event["series"]["count"] == 3
    events.failed(pod, "another reason")
    await until(lambda: outcomes["sent"] == 2)


async def test_an_event_that_the_api_server_forgot_is_made_anew(
    api: FakeApi, events: Events, outcomes: Counter[str]
) -> None:
    pod = create_pod(api)
    events.failed(pod, WHY)
    await until(lambda: outcomes["sent"] == 1)
    api.objects.delete(f"{EVENTS}/{events_of(api)[0]['metadata']['name']}")
    events.failed(pod, WHY)
    await until(lambda: outcomes["sent"] == 2)


async def test_a_bound_pod_has_an_event_and_no_warning_after_it(
    api: FakeApi, events: Events, outcomes: Counter[str]
) -> None:
    pod = create_pod(api)
    events.failed(pod, WHY)
    events.scheduled(pod, "n1")
    await until(lambda: outcomes["sent"])
    (event,) = events_of(api)
    assert (event["type"], event["reason"]) == ("Normal", "Scheduled")
    assert event["message"] == "Successfully assigned team/p to n1"


async def test_too_many_events_are_dropped_and_counted(api: FakeApi, events: Events, outcomes: Counter[str]) -> None:
    pods = [create_pod(api, f"p{number}") for number in range(2100)]
    api.expect(Hang(), method="POST")
    for pod in pods:
        events.scheduled(pod, "n1")
    assert outcomes["dropped"] == 100


@pytest.mark.parametrize("normal_a_second", [0.1])
async def test_why_pods_wait_is_told_though_too_many_were_placed(
    api: FakeApi, events: Events, outcomes: Counter[str]
) -> None:
    waits, pods = create_pod(api), [create_pod(api, f"p{number}") for number in range(150)]
    for pod in pods:
        events.scheduled(pod, "n1")
    await until(lambda: outcomes["sent"] >= 100)
    events.failed(waits, WHY)
    await until(lambda: any(event["reason"] == "FailedScheduling" for event in events_of(api)))
    assert outcomes["sent"] < 150
    assert not outcomes["dropped"]


@pytest.mark.parametrize("normal_a_second", [100])
async def test_those_that_were_placed_are_told_of_in_the_end(
    api: FakeApi, events: Events, outcomes: Counter[str]
) -> None:
    for pod in [create_pod(api, f"p{number}") for number in range(110)]:
        events.scheduled(pod, "n1")
    await until(lambda: outcomes["sent"] == 110)
    assert len(events_of(api)) == 110


@pytest.mark.parametrize("is_busy", [True])
async def test_an_event_that_nobody_takes_is_given_up(api: FakeApi, events: Events, outcomes: Counter[str]) -> None:
    api.expect(Refuse(429), method="POST", times=3)
    events.scheduled(create_pod(api), "n1")
    await until(lambda: outcomes["dropped"])
    events.scheduled(create_pod(api, "other"), "n1")
    await until(lambda: outcomes["sent"])
