"""A whole scheduler preempts pods of lower priority through the API server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from support.fake_api import FakeApi, Refuse
from support.kube import until
from support.scheduler_stage import Truth, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS, stands

EVENTS = "/api/v1/namespaces/team/events"


def said(api: FakeApi, reason: str) -> list[dict[str, Any]]:
    found = [event for event in api.objects.select(EVENTS, {}) if event["reason"] == reason]
    return sorted(found, key=lambda event: str(event["involvedObject"]["name"]))


def graceful(api: FakeApi) -> list[dict[str, Any]]:
    """Let a deleted pod stay until the test says that it is gone. Returns the options of each deletion."""
    gone, asked = api.objects.delete, list[dict[str, Any]]()

    def delete(path: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
        if not options:
            return gone(path)
        asked.append(options)
        return api.objects.begin_deletion(path)

    api.objects.delete = delete  # type: ignore[method-assign]
    return asked


def full(api: FakeApi) -> None:
    """One node, whose two cards have a pod of priority 1 and one of priority 2."""
    add_node(api, "n1")
    for priority in (1, 2):
        add_pod(api, f"p{priority}", 1000, priority=priority)


async def test_the_lowest_leaves_and_the_pod_takes_its_place(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        victim = stands(api, "p1")
        add_pod(api, "new", 600, priority=9)
        await until(lambda: stands(api, "new").node == "n1")
        assert [pod["metadata"]["name"] for pod in api.objects.select(PODS, {})] == ["new", "p2"]
        await until(lambda: said(api, "Preempted"))
        (event,) = said(api, "Preempted")
        assert (event["involvedObject"]["uid"], event["action"]) == (victim.uid, "Preempting")
        assert event["message"] == f"Preempted by pod {stands(api, 'new').uid} on node n1"
    assert Truth(api, tmp_path).check()["bound"] == 3


async def test_while_the_victim_ends_the_pod_is_nominated_and_nobody_else_takes_the_room(
    api: FakeApi, tmp_path: Path
) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        graceful(api)
        add_pod(api, "new", 600, priority=9)
        await until(lambda: stands(api, "p1").is_going)
        await until(lambda: stands(api, "new").status.nominated_node_name == "n1")
        conditions = stands(api, "p1").status.conditions
        assert ("DisruptionTarget", "True", "PreemptionByScheduler") in {
            (each.type, each.status, each.reason) for each in conditions
        }
        add_pod(api, "lower", 500, priority=3)
        await until(lambda: stands(api, "lower").status.nominated_node_name == "n1")
        await until(lambda: stands(api, "p2").is_going)
        await asyncio.sleep(0.2)
        assert not stands(api, "new").node
        for name in ("p1", "p2"):
            api.objects.delete(f"{PODS}/{name}")
        await until(lambda: not unbound(api))
    assert Truth(api, tmp_path).check()["bound"] == 4


async def test_who_is_being_deleted_and_takes_years_is_told_to_be_quicker(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        asked = graceful(api)
        for name in ("p1", "p2"):
            api.objects.patch(f"{PODS}/{name}", {"metadata": {"deletionTimestamp": "2099-01-01T00:00:00Z"}})
        add_pod(api, "new", 600, priority=9)
        await until(lambda: len(asked) == 1)
        assert asked[0]["gracePeriodSeconds"] == 120
        assert asked[0]["preconditions"] == {"uid": stands(api, "p1").uid}
        await until(lambda: not str(stands(api, "p1").metadata.deletion_timestamp).startswith("2099"))
        api.objects.delete(f"{PODS}/p1")
        await until(lambda: stands(api, "new").node == "n1")


async def test_a_victim_that_can_not_be_deleted_is_tried_again_later(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        api.expect(Refuse(403, "Forbidden"), method="DELETE", times=3)
        add_pod(api, "new", 600, priority=9)
        await until(lambda: stands(api, "new").node == "n1")
        assert api.count("DELETE", PODS) == 4


async def test_a_nomination_that_came_to_nothing_is_taken_back(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        graceful(api)
        add_pod(api, "new", 600, priority=2)
        await until(lambda: stands(api, "new").status.nominated_node_name == "n1")
        add_pod(api, "higher", 1000, priority=9)
        await until(lambda: stands(api, "higher").status.nominated_node_name == "n1")
        await until(lambda: not stands(api, "new").status.nominated_node_name)


async def test_what_is_said_of_preemption_follows_upstream_s_grammar(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 2000, priority=2)
        add_pod(api, "never", 1000, priority=9, preemptionPolicy="Never")
        await until(lambda: stands(api, "new").status.conditions and stands(api, "never").status.conditions)
        never, new = (stands(api, name).status.conditions[0].message for name in ("never", "new"))
        assert never == "0/1 nodes are available: 1 Insufficient GPU share."
        assert new == f"{never} preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        assert not {"p1", "p2"} - {pod["metadata"]["name"] for pod in api.objects.select(PODS, {})}
