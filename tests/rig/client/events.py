"""Events of an object, as `kubectl describe` shows them."""

from __future__ import annotations

from dataclasses import dataclass

from rig.client.api import Api
from rig.client.resources import EVENTS, Json


@dataclass(frozen=True)
class ObjectEvent:
    """What somebody reported about an object, and how often."""

    type: str
    reason: str
    message: str
    reporter: str
    count: int

    def __str__(self) -> str:
        return f"{self.type} {self.reason} ({self.reporter}): {self.message}"


def events_of(api: Api, subject: Json) -> list[ObjectEvent]:
    """Events about this very object, not about an earlier one of its name; oldest first."""
    metadata = subject["metadata"]
    query = {"fieldSelector": f"involvedObject.uid={metadata['uid']}"}
    found = api.list(EVENTS.at(metadata.get("namespace")), query)
    return [_event(each) for each in sorted(found, key=_last_seen)]


def _last_seen(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _event(event: Json) -> ObjectEvent:
    series = event.get("series") or {}
    reporter = event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
    return ObjectEvent(
        type=event.get("type", ""),
        reason=event.get("reason", ""),
        message=event.get("message", ""),
        reporter=reporter,
        count=series.get("count") or event.get("count") or 1,
    )
