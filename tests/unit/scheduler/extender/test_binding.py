"""A whole scheduler as an extender: devices are allocated once, when a pod is bound, and always consistently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from partage_plugins.api import NodeName
from partage_plugins.api.keys import ALLOCATION
from partage_scheduler.extender.filter import GATED, NO_MORE, NOTHING_OF_OURS, OURS
from partage_scheduler.extender.reminders import CONDITION
from partage_scheduler.extender.verbs import NO_NAMES
from support.fake_api import FakeApi, Hang, Refuse
from support.kube import until
from support.scheduler_stage import Running, Truth, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS, stands
from unit.scheduler.extender.stage import FOREIGN, Caller

N1 = NodeName("n1")
Story = Callable[[FakeApi, Caller], Awaitable[None]]


@asynccontextmanager
async def extender(
    api: FakeApi, root: Path, *, leads: bool = True, elect: bool = False, answers_within_s: float = 10.0
) -> AsyncGenerator[tuple[Running, Caller]]:
    where = {"extender_address": "127.0.0.1:0", "extender_answers_within_s": answers_within_s}
    async with scheduler(api, settings_below(root, extender_nodes=0, elect=elect, **where)) as running:
        assert running.parts.extender is not None
        await running.parts.extender.open(running.tasks)
        if leads:
            await until(lambda: not running.health.against_ready)
        try:
            async with aiohttp.ClientSession() as session:
                yield running, Caller(session, f"http://127.0.0.1:{running.parts.extender.port}", running)
        finally:
            await running.parts.extender.settle(1)
            await running.parts.extender.close()


def told(
    *nodes: str, bound: int | None = None, **more: Any
) -> Callable[[Story], Callable[[FakeApi, Path], Awaitable[None]]]:
    """Run a story with nodes of two cards each; check how many pods are bound in the end, if `bound` is given."""

    def decorate(story: Story) -> Callable[[FakeApi, Path], Awaitable[None]]:
        async def test(api: FakeApi, tmp_path: Path) -> None:
            for name in nodes:
                add_node(api, name)
            async with extender(api, tmp_path, **more) as (_, caller):
                await story(api, caller)
            if bound is not None:
                assert Truth(api, tmp_path).check()["bound"] == bound

        return test

    return decorate


def a_pod(api: FakeApi, name: str, milli: int = 500, **spec: Any) -> dict[str, Any]:
    spec.setdefault("schedulerName", FOREIGN)
    return add_pod(api, name, milli, **spec)


@told("n1", "n2", bound=1)
async def test_a_pod_is_placed_as_kube_scheduler_does_it(api: FakeApi, caller: Caller) -> None:
    pod = a_pod(api, "p")
    found = await caller.filter(pod, "n2", "n1")
    assert (found["NodeNames"], found["Error"]) == (["n2", "n1"], "")
    scores = await caller.prioritize(pod, *found["NodeNames"])
    best = max(scores, key=scores.__getitem__)
    assert unbound(api) == ["p"]
    assert await caller.bind(pod, best) == ""
    assert stands(api).node == best


@told("n1", bound=3)
async def test_of_pods_that_all_saw_the_last_room_one_gets_it_and_the_others_are_told(
    api: FakeApi, caller: Caller
) -> None:
    pods = [a_pod(api, f"p{number}", 1000) for number in range(5)]
    for pod in pods:
        assert (await caller.filter(pod, "n1"))["NodeNames"] == ["n1"]
    errors = await asyncio.gather(*(caller.bind(pod, "n1") for pod in pods))
    refused = [error for error in errors if error]
    assert len(refused) == 3
    assert set(refused) == {f"{NO_MORE}: Insufficient GPU share"}
    page = list(caller.running.parts.core.cluster.holders(N1))
    assert len(page) == 2
    late = next(pod for pod, error in zip(pods, errors, strict=True) if error)
    assert (await caller.filter(late, "n1"))["FailedNodes"] == {"n1": "Insufficient GPU share"}
    gone = next(pod for pod, error in zip(pods, errors, strict=True) if not error)
    api.objects.delete(f"{PODS}/{gone['metadata']['name']}")
    await until(lambda: len(caller.running.parts.core.cluster.holders(N1)) == 1)
    assert (await caller.filter(late, "n1"))["NodeNames"] == ["n1"]
    assert await caller.bind(late, "n1") == ""


@told("n1", bound=2)
async def test_a_binding_that_is_refused_gives_everything_back(api: FakeApi, caller: Caller) -> None:
    first, second = a_pod(api, "first", 1000), a_pod(api, "second", 1000)
    third = a_pod(api, "third", 1000)
    await caller.filter(first, "n1")
    api.expect(Refuse(403), method="POST", under=f"{PODS}/first")
    assert "403" in await caller.bind(first, "n1")
    assert await caller.bind(second, "n1") == ""
    assert await caller.bind(third, "n1") == ""


@told("n1", bound=0)
async def test_only_pods_that_kube_scheduler_would_bind_by_us_are_bound(api: FakeApi, caller: Caller) -> None:
    plain = add_pod(api, "plain", schedulerName=FOREIGN)
    gated = a_pod(api, "gated", schedulingGates=[{"name": "wait"}])
    ours = a_pod(api, "ours", 3000, schedulerName="partage-scheduler")
    for pod, why in ((plain, NOTHING_OF_OURS), (gated, GATED), (ours, OURS)):
        assert await caller.bind(pod, "n1") == why
        assert not stands(api, pod["metadata"]["name"]).node
    await caller.filter(gated, "n1")
    assert await caller.bind(gated, "n1") == GATED


@told("n1", "n2", bound=1)
async def test_asked_again_for_what_is_done_it_is_done(api: FakeApi, caller: Caller) -> None:
    pod = a_pod(api, "p")
    await caller.filter(pod, "n1", "n2")
    assert await caller.bind(pod, "n1") == ""
    assert await caller.bind(pod, "n1") == ""
    assert await caller.bind(pod, "n2") == "it is on node n1 already"
    assert api.count("POST", f"{PODS}/p/binding") == 1


@pytest.mark.slow
@told("n1", "n2", answers_within_s=1.0, bound=1)
async def test_what_takes_too_long_is_not_waited_for_and_goes_on(api: FakeApi, caller: Caller) -> None:
    pod = a_pod(api, "p")
    api.expect(Hang(), method="POST", under=f"{PODS}/p")
    assert "not known yet" in await caller.bind(pod, "n1")
    assert await caller.bind(pod, "n2") == "its binding to n1 is under way"
    api.release()
    await until(lambda: stands(api).node == "n1")
    await until(lambda: ALLOCATION in stands(api).metadata.annotations)
    assert await caller.bind(pod, "n1") == ""


@told("n1", "n2")
async def test_a_pod_that_is_gone_or_was_bound_by_others_is_not_bound(api: FakeApi, caller: Caller) -> None:
    gone, taken, renewed = a_pod(api, "gone"), a_pod(api, "taken"), a_pod(api, "renewed")
    await caller.filter(taken, "n1")
    api.objects.delete(f"{PODS}/gone")
    api.objects.patch(f"{PODS}/taken", {"spec": {"nodeName": "n2"}})
    api.objects.delete(f"{PODS}/renewed")
    a_pod(api, "renewed")
    assert "404" in await caller.bind(gone, "n1")
    assert "n2" in await caller.bind(taken, "n1")
    assert await caller.bind(renewed, "n1") == "it is gone, and another pod has its name"
    assert not caller.running.parts.core.cluster.holders(N1)


@told("n1", bound=2)
async def test_both_ways_of_placing_share_one_count(api: FakeApi, caller: Caller) -> None:
    theirs = [a_pod(api, f"theirs{number}", 700) for number in range(2)]
    assert [await caller.bind(pod, "n1") for pod in theirs] == ["", ""]
    ours = add_pod(api, "ours", 700)
    await until(lambda: stands(api, "ours").status.conditions)
    assert stands(api, "ours").status.conditions[0].message.startswith("0/1 nodes are available: 1 Insufficient")
    assert (await caller.filter(ours, "n1"))["Error"] == OURS


@told("n1")
async def test_whole_nodes_are_not_read(api: FakeApi, caller: Caller) -> None:
    _, found = await caller.ask("filter", {"Pod": a_pod(api, "p"), "Nodes": {"items": []}, "NodeNames": None})
    assert found["Error"] == NO_NAMES


async def test_a_follower_says_so_and_decides_nothing(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    async with (
        extender(api, tmp_path, elect=True),
        extender(api, tmp_path, elect=True, leads=False) as (follower, caller),
    ):
        await until(lambda: not follower.health.against_ready)
        pod = a_pod(api, "p")
        assert "does not lead" in (await caller.filter(pod, "n1"))["Error"]
        assert "does not lead" in await caller.bind(pod, "n1")
        assert (await caller.ask("preempt", {"Pod": pod}))[0] == 503
        assert unbound(api) == ["p"]


@told("n1", bound=1)
async def test_nothing_is_answered_while_what_is_known_may_be_out_of_date(api: FakeApi, caller: Caller) -> None:
    pod = a_pod(api, "p")
    caller.running.parts.freshness.lost("nodes")
    assert "as of now: nodes" in (await caller.filter(pod, "n1"))["Error"]
    assert "as of now: nodes" in await caller.bind(pod, "n1")
    caller.running.parts.freshness.fresh("nodes")
    assert await caller.bind(pod, "n1") == ""


@told("n1", bound=3)
async def test_where_shares_alone_are_lacking_lower_ones_leave(api: FakeApi, caller: Caller) -> None:
    low = [a_pod(api, f"low{number}", 1000, priority=number) for number in range(2)]
    assert [await caller.bind(pod, "n1") for pod in low] == ["", ""]
    high = a_pod(api, "high", 1000, priority=10)
    assert (await caller.filter(high, "n1"))["FailedNodes"] == {"n1": "Insufficient GPU share"}
    asked = {"n1": {"Pods": [{"UID": low[1]["metadata"]["uid"]}], "NumPDBViolations": 0}}
    _, found = await caller.ask("preempt", {"Pod": high, "NodeNameToMetaVictims": asked})
    assert not found["NodeNameToMetaVictims"]
    await until(lambda: stands(api, "high").status.nominated_node_name == "n1")
    await until(lambda: not api.count("DELETE", f"{PODS}/low1"))
    await until(lambda: api.count("DELETE", f"{PODS}/low0"))
    middle = a_pod(api, "middle", 1000, priority=5)
    assert not (await caller.filter(middle, "n1"))["NodeNames"]
    while not (await caller.filter(high, "n1"))["NodeNames"]:  # noqa: ASYNC110 - each look is a question
        await asyncio.sleep(0.01)
    assert await caller.bind(high, "n1") == ""


@pytest.mark.slow
@told("n1", bound=3)
async def test_kube_scheduler_is_reminded_of_a_pod_that_has_room_since_it_asked(api: FakeApi, caller: Caller) -> None:
    first = [a_pod(api, f"first{number}", 1000) for number in range(2)]
    assert [await caller.bind(pod, "n1") for pod in first] == ["", ""]
    waits = a_pod(api, "waits", 1000)
    assert not (await caller.filter(waits, "n1"))["NodeNames"]
    api.objects.delete(f"{PODS}/first0")
    await until(lambda: [each.type for each in stands(api, "waits").status.conditions] == [CONDITION])
    assert (await caller.filter(waits, "n1"))["NodeNames"] == ["n1"]
    assert await caller.bind(waits, "n1") == ""


@told("n1")
async def test_victims_are_added_until_the_devices_fit(api: FakeApi, caller: Caller) -> None:
    low = [a_pod(api, f"low{number}", 1000, priority=number) for number in range(2)]
    assert [await caller.bind(pod, "n1") for pod in low] == ["", ""]
    high = a_pod(api, "high", 1000, priority=10)
    asked = {"n1": {"Pods": [], "NumPDBViolations": 0}, "unheard": {"Pods": [], "NumPDBViolations": 0}}
    _, found = await caller.ask("preempt", {"Pod": high, "NodeNameToMetaVictims": asked})
    assert found == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": low[0]["metadata"]["uid"]}], "NumPDBViolations": 0}}
    }
    asked["n1"]["Pods"] = [{"UID": low[1]["metadata"]["uid"]}]
    _, found = await caller.ask("preempt", {"Pod": high, "NodeNameToMetaVictims": asked})
    assert found["NodeNameToMetaVictims"]["n1"]["Pods"] == asked["n1"]["Pods"]
    equal = a_pod(api, "equal", 1000, priority=0)
    _, found = await caller.ask("preempt", {"Pod": equal, "NodeNameToMetaVictims": asked})
    assert not found["NodeNameToMetaVictims"]
    assert len([pod for pod in low if stands(api, pod["metadata"]["name"]).node]) == 2
