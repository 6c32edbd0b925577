"""What each namespace is promised and uses now, and was promised over the last week. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final

from partage_cli.tables import amount
from partage_cli.usage.report import HeldTime
from partage_ui.facts import Facts, Scope, Week
from partage_ui.html import Html, joined, tag
from partage_ui.views.parts import Query, Shown, code, counted, milli, nothing, paged, stacked, table

_HEADS: Final = ("Namespace", "Wait", "Containers", "Share promised", "Share used", "Memory promised", "Memory held")
_OF_THE_WEEK: Final = ("Share, this week", "Memory, this week")
_SHARE_HOURS: Final = "sum by (namespace) (sum_over_time(partage_container_compute_share_ratio[7d:1m])) * 1000 / 60"
_MEMORY_HOURS: Final = "sum by (namespace) (sum_over_time(partage_container_memory_limit_bytes[7d:1m])) / 60 / 1024 ^ 3"


def namespaces(facts: Facts, scope: Scope, query: Query) -> Shown:
    names = [each for each in facts.namespaces if scope.sees(each)]
    chosen = [each for each in names if query.namespace in {"", each} and query.matches(each)]
    rows, pages = paged(chosen, query)
    waits = Counter(each.namespace for each in facts.waiting)
    figures = _figures(facts, set(rows))
    most = max((shares[1] for shares in figures.values()), default=0)
    if not chosen:
        return Shown(
            "No namespace has cards.", joined(nothing("No namespace has cards, or none that matches."), _week(facts))
        )
    heads = _HEADS if facts.week is None else (*_HEADS, *_OF_THE_WEEK)
    body = table("Namespaces", heads, (_row(name, waits[name], figures[name], most, facts.week) for name in rows))
    return Shown(
        f"{counted(len(names), 'namespace has', 'namespaces have')} or wait for cards.",
        joined(body, pages, _week(facts)),
    )


def _figures(facts: Facts, names: set[str]) -> dict[str, list[int]]:
    """For each: containers, milli promised and got, bytes promised and held."""
    found = {name: [0, 0, 0, 0, 0] for name in names}
    for each in facts.workloads:
        if (sums := found.get(each.namespace)) is None:
            continue
        time = None if each.held is None else each.held.time
        added = (1, each.share_milli, 0 if time is None else milli(time.got.s60), each.memory_bytes)
        for place, number in enumerate((*added, 0 if each.held is None else each.held.charged_bytes)):
            sums[place] += number
    return found


def _row(name: str, waits: int, figures: list[int], most: int, week: Week | None) -> tuple[str, ...]:
    containers, share, got, memory, held = figures
    bar = stacked(
        f"{share} milli promised, {got} used", ("promised", share / max(1, most)), ("got", got / max(1, most))
    )
    return (
        name,
        str(waits or "-"),
        str(containers),
        joined(bar, tag("small", f"{share} milli")),
        f"{got} milli",
        amount(memory),
        amount(held),
        *(() if week is None else _hours(week.held.get(name))),
    )


def _hours(held: HeldTime | None) -> tuple[str, str]:
    return ("-", "-") if held is None else (f"{held.milli_hours:.0f} milli-hours", f"{held.gib_hours:.1f} GiB-hours")


def _week(facts: Facts) -> Html:
    if facts.week is not None:
        words = f"The week's figures are of {facts.week.until:%Y-%m-%d %H:%M} UTC, from Prometheus."
        return tag("section", tag("h2", "This week"), *(tag("p", each) for each in (words, *facts.week.notes)))
    return tag(
        "section",
        tag("h2", "This week"),
        tag(
            "p",
            "This page keeps no week. A Prometheus that scrapes the nodes' brokers does: its address is the setting ",
            code("prometheus"),
            " of the page. Or ask it for milli-hours and GiB-hours that were promised:",
        ),
        tag("p", code(_SHARE_HOURS)),
        tag("p", code(_MEMORY_HOURS)),
    )
