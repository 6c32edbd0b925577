"""A wait ends as soon as it can, and in vain with what was seen."""

from __future__ import annotations

from typing import Any

import pytest

from rig.errors import NeverHappened
from rig.talking import pod_status
from rig.talking.waiting import until


def test_a_wait_ends_once_nothing_speaks_against_it() -> None:
    reasons = iter(["a", "b", None])
    until("it", lambda: next(reasons))
    assert next(reasons, "over") == "over"


def test_a_wait_in_vain_tells_what_was_seen_last() -> None:
    with pytest.raises(NeverHappened, match=r"^node n1 is ready: not within 0 s; last seen: it has not registered$"):
        until("node n1 is ready", lambda: "it has not registered", 0)


def test_a_hopeless_wait_ends_at_once() -> None:
    def hopeless() -> str | None:
        raise NeverHappened("it has ended already")

    with pytest.raises(NeverHappened, match="ended already"):
        until("it", hopeless, 600)


def a_pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {}, "status": status}


def test_a_summary_says_why_a_pod_has_no_node() -> None:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    pod = a_pod(phase="Pending", conditions=[told])
    assert pod_status.summary(pod) == "phase Pending; node none; not scheduled: Unschedulable: 0/2 nodes"


def test_a_summary_says_what_keeps_containers() -> None:
    waiting = {"waiting": {"reason": "CreateContainerError", "message": "partage: no"}}
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    statuses = [{"name": "main", "state": waiting}, {"name": "side", "state": ended}]
    pod = {**a_pod(phase="Pending", containerStatuses=statuses), "spec": {"nodeName": "n1"}}
    assert pod_status.summary(pod) == (
        "phase Pending; node n1; container main waiting (reason CreateContainerError, message partage: no); "
        "container side terminated (exitCode 137, reason OOMKilled)"
    )


def test_a_summary_says_that_a_pod_is_on_its_way_out_and_why_it_was_refused() -> None:
    pod = a_pod(phase="Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pod_status.summary(pod) == (
        "phase Failed; node none; being deleted; OutOfcpu: Node didn't have enough resource: cpu"
    )


def test_an_object_without_a_status_has_no_conditions_or_containers() -> None:
    pod: dict[str, Any] = {"metadata": {}, "spec": {}}
    assert pod_status.phase(pod) == "Unknown"
    assert pod_status.condition(pod, "Ready") == {}
    assert pod_status.containers(pod) == {}
    assert pod_status.state({}) == ("waiting", {})
