"""Usage by pod and by namespace, and its output. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

import msgspec

from partage_cli.tables import printable, table

GIB: Final = 1 << 30
HOUR_S: Final = 3600.0
_ALL: Final = "(all)"


class HeldTime(msgspec.Struct, frozen=True, kw_only=True):
    """1000 milli-hours are a whole card for an hour. Only Prometheus has the time got and the memory charged."""

    namespace: str
    pod: str = ""
    """Empty for the sum over the namespace's pods."""
    milli_hours: float = 0.0
    """Of the guaranteed share."""
    gib_hours: float = 0.0
    """Of the memory limit."""
    got_milli_hours: float | None = None
    """Time during which it held the card."""
    charged_gib_hours: float | None = None
    """Memory counted against its limit."""


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    source: Literal["allocations", "prometheus"]
    since: datetime
    """As requested."""
    until: datetime
    pods: tuple[HeldTime, ...]
    notes: tuple[str, ...] = ()
    """What the report does not cover, one line each."""

    @property
    def namespaces(self) -> tuple[HeldTime, ...]:
        """Sums over each namespace's pods, by name."""
        found: dict[str, list[HeldTime]] = {}
        for each in self.pods:
            found.setdefault(each.namespace, []).append(each)
        return tuple(_together(name, held) for name, held in sorted(found.items()))


def as_table(found: UsageReport, *, pods: bool) -> str:
    """A line for each namespace; with `pods` preceded by one for each of its pods, the largest first."""
    has_more = found.source == "prometheus"
    header = ("NAMESPACE", *(("POD",) if pods else ()), "MILLI-HOURS", "GIB-HOURS")
    rows = list[tuple[str, ...]]()
    for whole in found.namespaces:
        own = [each for each in found.pods if pods and each.namespace == whole.namespace]
        for each in (*sorted(own, key=lambda each: (-each.milli_hours, -each.gib_hours, each.pod)), whole):
            names = (printable(each.namespace), *((printable(each.pod) or _ALL,) if pods else ()))
            rows.append((*names, *_amounts(each, has_more=has_more)))
    return table((*header, *(("GOT", "CHARGED") if has_more else ())), rows)


def fields(found: UsageReport) -> dict[str, object]:
    """JSON output; docs/configuration.md documents the shape."""
    return {**{name: getattr(found, name) for name in found.__struct_fields__}, "namespaces": found.namespaces}


def _together(namespace: str, held: Iterable[HeldTime]) -> HeldTime:
    every = tuple(held)
    got = [each.got_milli_hours for each in every if each.got_milli_hours is not None]
    charged = [each.charged_gib_hours for each in every if each.charged_gib_hours is not None]
    return HeldTime(
        namespace=namespace,
        milli_hours=sum(each.milli_hours for each in every),
        gib_hours=sum(each.gib_hours for each in every),
        got_milli_hours=sum(got) if got else None,
        charged_gib_hours=sum(charged) if charged else None,
    )


def _amounts(held: HeldTime, *, has_more: bool) -> tuple[str, ...]:
    more = (held.got_milli_hours, held.charged_gib_hours) if has_more else ()
    return tuple("-" if each is None else f"{each:,.1f}" for each in (held.milli_hours, held.gib_hours, *more))
