"""What users are told of their pods, and what it may cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from partage_base.kube import ApiServer
from partage_scheduler.api import Events, StatusWriter, Unplaced
from support.fake_api import FakeApi, Hang, Refuse
from support.kube import told, until
from support.scheduling import PODS, create_pod, stands
from support.stories import played_by

WHY = "0/3 nodes are available: 3 Insufficient GPU share."
EVENTS = "/api/v1/namespaces/team/events"


async def while_running(run: Coroutine[Any, Any, None], story: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.create_task(run)
    try:
        await story()
    finally:
        task.cancel()
        await asyncio.wait([task])


def tell_conditions(
    story: Callable[[FakeApi, StatusWriter, Counter[str]], Awaitable[None]], *, every_s: float = 0.0
) -> None:
    async def whole(api: FakeApi, server: ApiServer) -> None:
        written = Counter[str]()
        conditions = StatusWriter(
            server, written=lambda outcome: written.update([outcome]), every_s=every_s, sleep=_no_time
        )
        await while_running(conditions.run(), lambda: story(api, conditions, written))

    told(whole)


def tell_events(
    story: Callable[[FakeApi, Events, Counter[str]], Awaitable[None]],
    *,
    is_busy: bool = False,
    every_s: float = 0.0,
    normal_a_second: float = 1000.0,
) -> None:
    async def whole(api: FakeApi, server: ApiServer) -> None:
        sent = Counter[str]()
        events = Events(
            server,
            instance="s1",
            sent=lambda outcome: sent.update([outcome]),
            is_busy=lambda: is_busy,
            every_s=every_s,
            normal_a_second=normal_a_second,
            sleep=_no_time,
        )
        await while_running(events.run(), lambda: story(api, events, sent))

    told(whole)


async def _no_time(_seconds: float) -> None:
    await asyncio.sleep(0)


def events_of(api: FakeApi) -> list[dict[str, Any]]:
    return api.objects.select(EVENTS, {})


@played_by(tell_conditions)
async def test_a_pod_that_waits_says_why(api: FakeApi, conditions: StatusWriter, written: Counter[str], /) -> None:
    pod = create_pod(api)
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: written["done"])
    (condition,) = stands(api).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == WHY
    assert condition.last_transition_time


@played_by(tell_conditions)
async def test_what_stands_there_is_not_written_again(
    api: FakeApi, conditions: StatusWriter, written: Counter[str], /
) -> None:
    pod = create_pod(api)
    for _ in range(2):
        conditions.tell(Unplaced(pod, WHY))
        await until(lambda: written["done"])
    conditions.forget(pod.uid)  # as a scheduler that starts anew
    conditions.tell(Unplaced(stands(api), WHY))
    assert not len(conditions)
    assert api.count("PATCH") == 1


@played_by(tell_conditions, every_s=1000)
async def test_what_changes_too_often_is_written_once_in_a_while(
    api: FakeApi, conditions: StatusWriter, written: Counter[str], /
) -> None:
    pod = create_pod(api)
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: written["done"])
    for number in range(20):
        conditions.tell(Unplaced(pod, f"{WHY} {number}"))
        await asyncio.sleep(0)
    assert api.count("PATCH") == 1
    assert len(conditions) == 1


@played_by(tell_conditions)
async def test_what_was_refused_is_written_later_and_the_latest_of_it(
    api: FakeApi, conditions: StatusWriter, written: Counter[str], /
) -> None:
    pod = create_pod(api)
    api.expect(Refuse(429), method="PATCH", times=2)
    conditions.tell(Unplaced(pod, "an old reason"))
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: written["done"])
    assert written["failed"] == 2
    assert stands(api).status.conditions[0].message == WHY


@played_by(tell_conditions)
async def test_a_pod_that_is_gone_is_no_trouble(
    api: FakeApi, conditions: StatusWriter, written: Counter[str], /
) -> None:
    pod = create_pod(api)
    api.objects.delete(f"{PODS}/p")
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: written["gone"])
    assert not len(conditions)


@played_by(tell_conditions)
async def test_who_binds_waits_for_what_is_being_written(
    api: FakeApi, conditions: StatusWriter, written: Counter[str], /
) -> None:
    pod, other = create_pod(api), create_pod(api, "other")
    api.expect(Hang(), method="PATCH")
    conditions.tell(Unplaced(pod, WHY))
    await until(lambda: api.count("PATCH"))
    conditions.tell(Unplaced(other, WHY))
    await conditions.settled(other.uid)  # it was not begun, and will not be
    settling = asyncio.create_task(conditions.settled(pod.uid))
    await asyncio.sleep(0.01)
    assert not settling.done()
    api.release()
    await settling
    assert stands(api).status.conditions
    assert not stands(api, "other").status.conditions


@played_by(tell_events)
async def test_a_pod_that_waits_has_an_event_that_counts(api: FakeApi, events: Events, sent: Counter[str], /) -> None:
    pod = create_pod(api)
    for number in range(3):
        events.failed(pod, WHY)
        await until(lambda number=number: sent["sent"] + sent["counted"] == number + 1)  # type: ignore[misc]
    (event,) = events_of(api)
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert event["message"] == WHY
    assert event["involvedObject"]["uid"] == pod.uid
    assert event["reportingComponent"] == "partage-scheduler"
    assert event["series"]["count"] == 3
    events.failed(pod, "another reason")
    await until(lambda: sent["sent"] == 2)


@played_by(tell_events)
async def test_an_event_that_the_api_server_forgot_is_made_anew(
    api: FakeApi, events: Events, sent: Counter[str], /
) -> None:
    pod = create_pod(api)
    events.failed(pod, WHY)
    await until(lambda: sent["sent"] == 1)
    api.objects.delete(f"{EVENTS}/{events_of(api)[0]['metadata']['name']}")
    events.failed(pod, WHY)
    await until(lambda: sent["sent"] == 2)


@played_by(tell_events)
async def test_a_bound_pod_has_an_event_and_no_warning_after_it(
    api: FakeApi, events: Events, sent: Counter[str], /
) -> None:
    pod = create_pod(api)
    events.failed(pod, WHY)
    events.scheduled(pod, "n1")
    await until(lambda: sent["sent"])
    (event,) = events_of(api)
    assert (event["type"], event["reason"]) == ("Normal", "Scheduled")
    assert event["message"] == "Successfully assigned team/p to n1"


@played_by(tell_events)
async def test_too_many_events_are_dropped_and_counted(api: FakeApi, events: Events, sent: Counter[str], /) -> None:
    pods = [create_pod(api, f"p{number}") for number in range(2100)]
    api.expect(Hang(), method="POST")
    for pod in pods:
        events.scheduled(pod, "n1")
    assert sent["dropped"] == 100


@played_by(tell_events, normal_a_second=0.1)
async def test_why_pods_wait_is_told_though_too_many_were_placed(
    api: FakeApi, events: Events, sent: Counter[str], /
) -> None:
    waits, pods = create_pod(api), [create_pod(api, f"p{number}") for number in range(150)]
    for pod in pods:
        events.scheduled(pod, "n1")
    await until(lambda: sent["sent"] >= 100)
    events.failed(waits, WHY)
    await until(lambda: any(event["reason"] == "FailedScheduling" for event in events_of(api)))
    assert sent["sent"] < 150
    assert not sent["dropped"]


@played_by(tell_events, normal_a_second=100)
async def test_those_that_were_placed_are_told_of_in_the_end(
    api: FakeApi, events: Events, sent: Counter[str], /
) -> None:
    for pod in [create_pod(api, f"p{number}") for number in range(110)]:
        events.scheduled(pod, "n1")
    await until(lambda: sent["sent"] == 110)
    assert len(events_of(api)) == 110


@played_by(tell_events, is_busy=True)
async def test_an_event_that_nobody_takes_is_given_up(api: FakeApi, events: Events, sent: Counter[str], /) -> None:
    api.expect(Refuse(429), method="POST", times=3)
    events.scheduled(create_pod(api), "n1")
    await until(lambda: sent["dropped"])
    events.scheduled(create_pod(api, "other"), "n1")
    await until(lambda: sent["sent"])
