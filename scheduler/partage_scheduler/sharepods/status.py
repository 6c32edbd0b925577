"""The status of a SharePod: KubeShare's fields, and one condition, `Synced`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from partage_scheduler.objects import Condition
from partage_scheduler.sharepods.cards import cards_of
from partage_scheduler.sharepods.objects import OwnedPod, SharePod
from partage_scheduler.sharepods.step import Halt

SYNCED: Final = "Synced"
SYNCED_MESSAGE: Final = "SharePod synced successfully"
_LONGEST_MESSAGE: Final = 2_048


def status_of(share: SharePod, pod: OwnedPod | None, halt: Halt | None, *, now: str) -> dict[str, Any]:
    """The desired status; without a pod its fields stay as they are. `now` is a Kubernetes timestamp."""
    status = dict(share.status)
    if pod is not None and pod.is_of(share):
        status |= {"PodStatus": pod.status, "PodObjectMeta": msgspec.to_builtins(pod.metadata)}
        if cards := cards_of(pod):
            status["BoundDeviceID"] = ",".join(cards)
        elif pod.metadata.uid != _uid_of_last(share):
            status.pop("BoundDeviceID", None)
    if halt is not None or pod is not None:
        said = ("True", SYNCED, _of_pod(pod)) if halt is None else ("False", halt.reason, halt.message)
        status["conditions"] = [_condition(synced(share), said, now)]
    return status


def synced(share: SharePod) -> Condition | None:
    """Its condition; None if it has no readable one."""
    return _read(share.status, SYNCED)


def _of_pod(pod: OwnedPod | None) -> str:
    """Repeats why a pod waits, since users look at the SharePod."""
    placed = None if pod is None else _read(pod.status, "PodScheduled")
    waits = placed is not None and placed.status == "False" and placed.message
    return f"{SYNCED_MESSAGE}; its pod waits: {waits}" if waits else SYNCED_MESSAGE


def _read(status: Mapping[str, Any], type_: str) -> Condition | None:
    try:
        conditions = msgspec.convert(status.get("conditions", ()), tuple[Condition, ...])
    except msgspec.ValidationError:
        return None
    return next((each for each in conditions if each.type == type_), None)


def _condition(before: Condition | None, said: tuple[str, str, str], now: str) -> dict[str, Any]:
    status, reason, message = said
    since = before.last_transition_time if before is not None and before.status == status else None
    return {
        "type": SYNCED,
        "status": status,
        "reason": reason,
        "message": message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…",
        "lastTransitionTime": since or now,
    }


def _uid_of_last(share: SharePod) -> str:
    last = share.status.get("PodObjectMeta")
    return str(last.get("uid", "")) if isinstance(last, dict) else ""
