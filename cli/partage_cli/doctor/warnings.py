"""Warning Events of partage's daemons in the last hour, one finding for each reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from partage_base.kube import Meta
from partage_cli.doctor.findings import About, Finding
from partage_cli.nodes.reports import moment
from partage_cli.tables import age, few, pod_name, printable

WITHIN_S: Final = 3600.0
REPORTERS: Final = ("partage-advertiser", "partage-scheduler", "partage-sharepods")
"""Our daemons that write Events."""
_LONGEST: Final = 300


class _Object(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str | None = None
    name: str = ""


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 1
    last_observed_time: str | None = None


class DaemonEvent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An Event as core/v1 shows it, written through either of the Events APIs."""

    metadata: Meta = Meta()
    involved_object: _Object = _Object()
    reason: str = ""
    message: str = ""
    reporting_component: str = ""
    count: int | None = None
    series: _Series | None = None
    event_time: str | None = None
    last_timestamp: str | None = None

    @property
    def at(self) -> datetime | None:
        """Time of the last occurrence."""
        last = self.series.last_observed_time if self.series else None
        return moment(last or self.last_timestamp or self.event_time or "")

    @property
    def times(self) -> int:
        return self.series.count if self.series else self.count or 1

    @property
    def about(self) -> str:
        """The involved object, for people."""
        name = printable(self.involved_object.name)
        if self.involved_object.kind == "Pod":
            return f"pod {pod_name(self.involved_object.namespace or 'default', self.involved_object.name)}"
        return f"{printable(self.involved_object.kind).lower()} {name}"


def warnings(events: Iterable[DaemonEvent], now: datetime) -> Iterator[Finding]:
    """The latest message of each reason, and the objects with that reason."""
    found: dict[str, list[tuple[float, DaemonEvent]]] = {}
    for each in events:
        if each.reporting_component in REPORTERS and each.at is not None:
            age_s = (now - each.at).total_seconds()
            if age_s <= WITHIN_S:
                found.setdefault(each.reason, []).append((age_s, each))
    for reason, told in sorted(found.items()):
        (age_s, last), *_ = sorted(told, key=lambda each: each[0])
        names = few(dict.fromkeys(each.about for _, each in told))
        words = f"{reason}, last {age(age_s)} ago, of {names}: {printable(last.message[:_LONGEST])}"
        is_pod = last.involved_object.kind == "Pod"
        yield About("events").warning(words, do=f"`partage {'explain' if is_pod else 'doctor'}` on each")
    if not found:
        yield About("events").ok("no warnings of partage's daemons in the last hour")
