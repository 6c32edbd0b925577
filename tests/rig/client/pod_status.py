"""Reads the status of a pod object. Pure."""

from __future__ import annotations

from typing import Any, Final

from rig.client.resources import Json

ENDED: Final = ("Succeeded", "Failed")


def phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", "Unknown"))


def condition(subject: Json, name: str) -> Json:
    """A condition of a pod or node; empty if it has none of that name."""
    found = (each for each in subject.get("status", {}).get("conditions", []) if each["type"] == name)
    return next(found, {})


def containers(pod: Json) -> dict[str, Json]:
    """The statuses of all containers, by name, in the order in which they start."""
    status = pod.get("status", {})
    lists = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return {each["name"]: each for field in lists for each in status.get(field, [])}


def state(container: Json) -> tuple[str, Json]:
    """The state (waiting, running or terminated) and its details."""
    found: list[tuple[str, Any]] = list(container.get("state", {}).items())
    return found[0] if found else ("waiting", {})


def summary(pod: Json) -> str:
    parts = [f"phase {phase(pod)}", f"node {pod['spec'].get('nodeName', 'none')}"]
    if "deletionTimestamp" in pod["metadata"]:
        parts.append("being deleted")
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        parts.append(f"not scheduled: {scheduled.get('reason')}: {scheduled.get('message')}")
    parts += [f"container {name} {_told(each)}" for name, each in containers(pod).items()]
    reason = pod.get("status", {}).get("reason")
    if reason:
        parts.append(f"{reason}: {pod['status'].get('message')}")
    return "; ".join(parts)


def _told(container: Json) -> str:
    name, details = state(container)
    said = [f"{key} {details[key]}" for key in ("exitCode", "signal", "reason", "message") if key in details]
    return f"{name} ({', '.join(said)})" if said else name
