"""Events on objects, as `kubectl describe` shows them.

Events are best effort. One that the API server does not accept in a few tries is dropped, so that none pile up. The
caller decides what is worth an event and how many wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, Literal, Self

import msgspec
import structlog

from partage_base.kube.backoff import Backoff
from partage_base.kube.errors import KubeError, NotFound
from partage_base.kube.objects import Meta, ObjectEvent, ObjectReference, micro_time
from partage_base.kube.paths import events_path
from partage_base.kube.server import ApiServer

Outcome = Literal["sent", "counted", "dropped"]
Severity = Literal["Normal", "Warning"]
_TRIES: Final = 3
_SERIES: Final = 2_000
"""How many events are remembered for counting; the same text after that creates a new event."""
_LONGEST_MESSAGE_BYTES: Final = 1_024
_LONGEST_INSTANCE: Final = 128
_LONGEST_BEGINNING: Final = 230
"""Limit for the prefix of an event's name, which with its number may have 253 characters."""
_NO_NAMESPACE: Final = "default"
"""The namespace of events about objects without a namespace."""
_log = structlog.get_logger()


class Occurrence(msgspec.Struct, frozen=True):
    about: ObjectReference
    type: Severity
    reason: str
    """In CamelCase, for programs."""
    message: str
    action: str

    @classmethod
    def of(cls, about: ObjectReference, type_: Severity, reason: str, message: str, action: str) -> Self:
        """Truncates the message to what the API server accepts."""
        text = message.encode()
        if len(text) > _LONGEST_MESSAGE_BYTES:
            message = text[: _LONGEST_MESSAGE_BYTES - len("…".encode())].decode(errors="ignore") + "…"
        return cls(about, type_, reason, message, action)


class EventWriter:
    """Writes the events of one reporter, each in at most three tries."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        component: str,
        instance: str,
        first_s: float,
        most_s: float,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`first_s` and `most_s` bound the backoff after a failure."""
        self._server, self._component, self._instance = server, component, instance[:_LONGEST_INSTANCE]
        self._sleep = sleep
        self._backoff = Backoff(first_s=first_s, most_s=most_s)
        self._series: OrderedDict[Occurrence, tuple[str, int]] = OrderedDict()

    async def write(self, what: Occurrence, *, in_series: bool = False) -> Outcome:
        """With `in_series`, the same occurrence again adds to the event's count instead of creating another event."""
        for _ in range(_TRIES):
            try:
                outcome = await self._counted(what) if in_series and what in self._series else None
                outcome = outcome or await self._created(what, in_series=in_series)
            except KubeError as error:
                _log.debug("event not accepted", why=str(error))
                await self._sleep(self._backoff.after(error))
            else:
                self._backoff.reset()
                return outcome
        return "dropped"

    async def _counted(self, what: Occurrence) -> Outcome | None:
        """None if the API server no longer has the event; it keeps events for an hour."""
        name, count = self._series[what]
        series = {"series": {"count": count + 1, "lastObservedTime": micro_time(datetime.now(UTC))}}
        try:
            await self._server.patch(f"{_path(what)}/{name}", series, msgspec.Raw)
        except NotFound:
            del self._series[what]
            return None
        self._series[what] = name, count + 1
        return "counted"

    async def _created(self, what: Occurrence, *, in_series: bool) -> Outcome:
        event = ObjectEvent(
            metadata=Meta(
                name=f"{what.about.name[:_LONGEST_BEGINNING]}.{time.time_ns():x}",
                namespace=what.about.namespace or _NO_NAMESPACE,
            ),
            involved_object=what.about,
            type=what.type,
            reason=what.reason,
            action=what.action,
            message=what.message,
            event_time=micro_time(datetime.now(UTC)),
            reporting_component=self._component,
            reporting_instance=self._instance,
        )
        await self._server.create(_path(what), event, msgspec.Raw)
        if in_series:
            self._series[what] = event.metadata.name, 1
            if len(self._series) > _SERIES:
                self._series.popitem(last=False)
        return "sent"


def _path(what: Occurrence) -> str:
    return events_path(what.about.namespace or _NO_NAMESPACE)
