"""Whether each container got what it was promised: time, memory, refusals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_cli.tables import amount, short_id
from partage_plugins.api.limits import WHOLE_MILLI
from partage_ui.facts import Facts, Scope
from partage_ui.html import Html, joined, tag
from partage_ui.views.parts import (
    Query,
    Shown,
    badge,
    counted,
    hour,
    memory_bar,
    milli,
    nothing,
    paged,
    share_bar,
    table,
    two,
)
from partage_ui.workload import Workload

_HEADS: Final = ("Container", "Card", "As promised", "Time, last minute", "Last hour", "Memory", "Refused")
_FULL: Final = 0.95


def workloads(facts: Facts, scope: Scope, query: Query) -> Shown:
    found = scope.of(facts.workloads)
    chosen = chosen_of(found, query)
    if not chosen:
        words = "No container has a part of a card." if not found else "No container matches."
        return Shown(words, nothing(words))
    short = sum(bool(each.short_by) for each in found)
    rows, pages = paged(chosen, query)
    told = f"{short} got less than promised" if short else "all got what they were promised"
    summary = f"{counted(len(found), 'container has', 'containers have')} parts of cards; {told} in the last minute."
    return Shown(
        summary,
        joined(
            table("Containers with parts of cards", _HEADS, (_row(facts, each) for each in rows)), _key(facts), pages
        ),
    )


def chosen_of(found: Sequence[Workload], query: Query) -> Sequence[Workload]:
    if not query.text and not query.namespace:
        return found
    return [
        each
        for each in found
        if query.namespace in {"", each.namespace}
        and query.matches(each.pod, each.namespace, each.node, each.name.lower(), each.card.lower())
    ]


def where(facts: Facts, each: Workload) -> Html:
    index = facts.index_of(each)
    card = short_id(each.card) if index is None else f"card {index}"
    return two(each.node, card)


def named(each: Workload) -> Html:
    return two(each.pod, f"{each.namespace} · {each.name}")


def _row(facts: Facts, each: Workload) -> tuple[str, ...]:
    held = each.held
    memory: str = tag("small", "not told")
    if held is not None:
        words = tag("small", f"{amount(held.charged_bytes)} of {amount(held.limit_bytes)}")
        memory = joined(memory_bar(held.charged_bytes, held.limit_bytes), words)
    refused = "-" if held is None else str(held.refused)
    return named(each), where(facts, each), verdict(each), _time(each), hour(each), memory, refused


def verdict(each: Workload) -> Html:
    held = each.held
    if held is None:
        return badge("not told yet", "quiet")
    if each.short_by:
        return badge(f"{milli(each.short_by)} milli short", "bad")
    if held.share_milli < held.granted_share_milli or held.limit_bytes < held.granted_bytes:
        return badge("lowered by an operator", "warn")
    if held.moving is not None and held.moving.is_suspended:
        return badge("suspended", "warn")
    if held.refused and held.charged_bytes >= _FULL * held.limit_bytes:
        return badge("at its memory limit", "warn")
    return badge("yes", "good")


def _time(each: Workload) -> Html:
    time = None if each.held is None else each.held.time
    has_room = each.share_milli < each.limit_milli < WHOLE_MILLI
    promised = f"{each.share_milli}–{each.limit_milli}" if has_room else f"{each.share_milli}"  # noqa: RUF001
    if time is None:
        return joined(share_bar(each), tag("small", f"{promised} milli promised, not metered"))
    words = f"got {milli(time.got.s60)}, wanted {milli(time.wanted.s60)}, promised {promised} milli"
    return joined(share_bar(each), tag("small", words))


def _key(facts: Facts) -> Html:
    words = (
        "Milli are thousandths of a card's time. A bar is what it got, pale what it wanted; the line is its guarantee, "
        "the pale one its ceiling. The hour is what this page has seen; the oldest figures are of "
        f"{facts.oldest:%H:%M:%S}."
    )
    return tag("p", words, class_="key")
