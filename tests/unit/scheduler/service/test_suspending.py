"""A whole scheduler suspends a pod in place of deleting it, as its node reports, and resumes it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from partage_plugins.api import GPU, Allocation
from partage_plugins.api.keys import ALLOCATION, SUSPEND, SUSPENDED_PODS
from partage_plugins.codecs import decode_allocation
from partage_scheduler.placement import resized_pods, suspender
from support.fake_api import FakeApi, Refuse
from support.kube import until
from support.objects import on_nodes
from support.scheduler_stage import LEASES, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS, stands
from unit.scheduler.service.test_preempting import said
from unit.scheduler.service.test_resizing import named

MAY = {SUSPEND: "allowed"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (suspender, resized_pods):
        monkeypatch.setattr(module, "EVERY_S", 0.02)


def allocation(api: FakeApi, name: str) -> Allocation:
    return decode_allocation(stands(api, name).metadata.annotations[ALLOCATION], [GPU])


def is_suspended(api: FakeApi, name: str) -> bool:
    return allocation(api, name).suspended is not None


def report(api: FakeApi, *names: str, node: str = "n1", **more: Any) -> None:
    """What the node writes on its Lease about these pods, for the allocations that they have now."""
    said = {stands(api, name).uid: {"gen": allocation(api, name).gen, **more} for name in names}
    text = json.dumps(said) if names else None
    api.objects.patch(f"{LEASES}/{node}", {"metadata": {"annotations": {SUSPENDED_PODS: text}}})


def full(api: FakeApi, **spec: Any) -> None:
    """One node, whose two cards have a pod each of 900 milli; that of priority 1 may be suspended."""
    add_node(api, "n1")
    add_pod(api, "low", 900, priority=1, annotations=MAY, **spec)
    add_pod(api, "other", 900, priority=9)


async def test_it_is_suspended_and_comes_back_when_its_room_is_free(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        before = allocation(api, "low")
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low"))
        await until(lambda: stands(api, "new").status.nominated_node_name == "n1")
        await until(lambda: named(api, "n1") == {"low": 2})
        await asyncio.sleep(0.1)
        assert not stands(api, "new").node
        report(api, "low", is_done=True)
        await until(lambda: stands(api, "new").node == "n1")
        await until(lambda: said(api, "Suspended"))
        (event,) = said(api, "Suspended")
        assert event["involvedObject"]["name"] == "low"
        assert event["message"].startswith(f"Suspended for pod {stands(api, 'new').uid} on node n1")
        add_pod(api, "equal", 300, priority=1)
        await asyncio.sleep(0.2)
        assert (allocation(api, "low").gen, is_suspended(api, "low")) == (2, True)
        assert not stands(api, "equal").node
        api.objects.delete(f"{PODS}/new")
        await until(lambda: not is_suspended(api, "low"))
        assert (allocation(api, "low").gen, allocation(api, "low").containers) == (3, before.containers)
        await until(lambda: said(api, "Resumed"))
        assert not said(api, "Preempted")
        await asyncio.sleep(0.1)
        assert not stands(api, "equal").node, "the room is taken again"


async def test_a_report_that_can_not_be_read_frees_nothing_and_the_log_names_the_node(
    api: FakeApi, tmp_path: Path
) -> None:
    full(api)
    with capture_logs() as logs:
        async with scheduler(api, settings_below(tmp_path)):
            await until(lambda: not unbound(api))
            add_pod(api, "new", 600, priority=5)
            await until(lambda: is_suspended(api, "low"))
            report(api, "low", is_done="yes")
            await until(lambda: any(each.get("node") == "n1" and "is_done" in each.get("why", "") for each in logs))
            assert not stands(api, "new").node
            report(api, "low", is_done=True)
            await until(lambda: stands(api, "new").node == "n1")


async def test_what_can_not_be_suspended_is_deleted_and_the_event_says_why(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low"))
        report(api, "low", why="its memory limit leaves 3 MiB")
        await until(lambda: stands(api, "new").node == "n1")
        await until(lambda: said(api, "Preempted"))
        (event,) = said(api, "Preempted")
        assert event["message"].endswith("on node n1: it could not be suspended: its memory limit leaves 3 MiB")
        assert not said(api, "Suspended")


async def test_a_node_that_says_nothing_is_waited_for_so_long(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspender, "PATIENCE_S", 1.0)
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 600, priority=5)
        await until(lambda: stands(api, "new").node == "n1")
        await until(lambda: said(api, "Preempted"))
        assert "its node did not report within 1 s" in said(api, "Preempted")[0]["message"]


async def test_if_the_other_pod_goes_before_it_is_done_it_stays(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low"))
        api.objects.delete(f"{PODS}/new")
        await until(lambda: not is_suspended(api, "low"))
        assert allocation(api, "low").gen == 3


@pytest.mark.parametrize("is_done", [False, True])
async def test_another_scheduler_goes_on_with_what_is_on_pods_and_leases(
    api: FakeApi, tmp_path: Path, *, is_done: bool
) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path, elect=False)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low") and stands(api, "new").status.nominated_node_name == "n1")
    if is_done:
        report(api, "low", is_done=True)
    async with scheduler(api, settings_below(tmp_path, elect=False)):
        await asyncio.sleep(0.2)
        assert is_suspended(api, "low")
        report(api, "low", is_done=True)
        await until(lambda: stands(api, "new").node == "n1")
        assert len(api.objects.select(PODS, {})) == 3, "nobody was deleted"
    async with scheduler(api, settings_below(tmp_path, elect=False)):
        await asyncio.sleep(0.2)
        assert is_suspended(api, "low")
        api.objects.delete(f"{PODS}/new")
        await until(lambda: not is_suspended(api, "low"))


async def test_of_several_the_one_of_the_highest_priority_comes_first(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    add_pod(api, "other", 900, priority=9)
    for name, priority in (("a", 1), ("b", 1), ("c", 2)):
        add_pod(api, name, 300, priority=priority, annotations=MAY)
    names = "abc"
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 1000, priority=5)
        await until(lambda: all(is_suspended(api, name) for name in names))
        report(api, *names, is_done=True)
        await until(lambda: stands(api, "new").node == "n1")
        add_pod(api, "next", 600, priority=5)
        api.objects.delete(f"{PODS}/new")
        await until(lambda: stands(api, "next").node == "n1")
        await until(lambda: not is_suspended(api, "c"))
        assert is_suspended(api, "a")
        assert is_suspended(api, "b")
        api.objects.delete(f"{PODS}/next")
        await until(lambda: not any(is_suspended(api, name) for name in names))


async def test_a_node_that_stays_full_does_not_keep_the_pods_of_another_suspended(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspender, "AT_ONCE", 1)
    nodes = ("n1", "n2")
    for node in nodes:
        add_node(api, node)
        add_pod(api, f"low-{node}", 900, priority=1, annotations=MAY, affinity=on_nodes(node))
        add_pod(api, f"other-{node}", 900, priority=9, affinity=on_nodes(node))
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        for node in nodes:
            add_pod(api, f"new-{node}", 600, priority=5, affinity=on_nodes(node))
        await until(lambda: all(is_suspended(api, f"low-{node}") for node in nodes))
        for node in nodes:
            report(api, f"low-{node}", node=node, is_done=True)
        await until(lambda: not unbound(api))
        api.objects.delete(f"{PODS}/new-n2")
        await until(lambda: not is_suspended(api, "low-n2"))
        assert is_suspended(api, "low-n1")


async def test_a_write_that_is_refused_frees_nothing_and_is_chosen_again(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: not unbound(api))
        api.expect(Refuse(422, "Invalid"), method="PATCH", under=f"{PODS}/low", times=2)
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low"))
        assert allocation(api, "low").gen == 2
        assert not running.failures


async def test_a_suspended_pod_that_is_deleted_leaves_its_room(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low"))
        report(api, "low", is_done=True)
        await until(lambda: stands(api, "new").node == "n1")
        add_pod(api, "equal", 300, priority=1)
        api.objects.delete(f"{PODS}/low")
        await until(lambda: stands(api, "equal").node == "n1")
        await until(lambda: named(api, "n1") == {})


@pytest.mark.parametrize("word", ["yes", "", "main: allowed"])
async def test_another_word_is_refused_in_one_sentence(api: FakeApi, tmp_path: Path, word: str) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 300, annotations={SUSPEND: word})
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: bool(stands(api, "p").status.conditions))
        (condition,) = stands(api, "p").status.conditions
        assert condition.message == f"request: {SUSPEND} is {word!r}; allowed: allowed, or no such annotation"


async def test_a_suspended_pod_is_not_resized(api: FakeApi, tmp_path: Path) -> None:
    full(api)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        add_pod(api, "new", 600, priority=5)
        await until(lambda: is_suspended(api, "low"))
        wish = {"partage.dev/resize": json.dumps({"main": {"gpu-milli": 100}})}
        api.objects.patch(f"{PODS}/low", {"metadata": {"annotations": wish}})
        await until(
            lambda: any("the pod is suspended" in each.message for each in stands(api, "low").status.conditions)
        )
        assert allocation(api, "low").gen == 2
