"""``partage nodes --events``: Events of partage's daemons in the last hour, about nodes, cards and pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from partage_base.kube import ApiServer, events_path
from partage_cli.doctor.warnings import REPORTERS, WITHIN_S, DaemonEvent
from partage_cli.tables import age, printable, table

_HEADER: Final = ("LAST", "ABOUT", "WHAT", "TIMES", "BY", "IN ITS WORDS")
_AT_A_TIME: Final = 500
_MOST: Final = 200
_LONGEST: Final = 300


class Happened(Struct, frozen=True, kw_only=True):
    at: datetime
    """Time of the last occurrence."""
    about: str
    """Such as `node n1` or `pod team/a`."""
    reason: str
    times: int
    by: str
    message: str


class LastHour(Struct, frozen=True, kw_only=True):
    events: tuple[Happened, ...]
    """The oldest first."""
    earlier: int = 0
    """Number of earlier ones that were left out."""


async def last_hour(server: ApiServer, *, node: str | None) -> LastHour:
    """Events about everything, or about one Node object; raises `KubeError`."""
    fields = (f"reportingComponent={each}" for each in REPORTERS)
    found = await asyncio.gather(
        *(server.list(events_path(), DaemonEvent, fields=each, limit=_AT_A_TIME) for each in fields)
    )
    return recent((event for events in found for event in events.items), datetime.now(UTC), node)


def recent(events: Iterable[DaemonEvent], now: datetime, node: str | None) -> LastHour:
    """The latest Events of the hour before `now`. Pure."""
    found = [
        Happened(
            at=each.at,
            about=each.about,
            reason=printable(each.reason),
            times=each.times,
            by=printable(each.reporting_component),
            message=printable(each.message[:_LONGEST]),
        )
        for each in events
        if each.at is not None
        and (now - each.at).total_seconds() <= WITHIN_S
        and (node is None or (each.involved_object.kind, each.involved_object.name) == ("Node", node))
    ]
    found.sort(key=lambda each: each.at)
    return LastHour(events=tuple(found[-_MOST:]), earlier=max(0, len(found) - _MOST))


def as_table(found: LastHour, now: datetime) -> str:
    return table(
        _HEADER,
        (
            (age((now - each.at).total_seconds()), each.about, each.reason, str(each.times), each.by, each.message)
            for each in found.events
        ),
    )
