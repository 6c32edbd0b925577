"""Which pods wait for cards: since when, why, and what would make them fit. Pure."""

from __future__ import annotations

from typing import Final

from partage_cli.tables import amount
from partage_ui.facts import Facts, Free, Scope
from partage_ui.html import Html, joined, tag
from partage_ui.objects import Needs, PodFact
from partage_ui.views.parts import Query, Shown, code, counted, nothing, paged, since, table, two

_HEADS: Final = ("Pod", "Since", "Asks for", "Why it waits", "What would make it fit")


def pending(facts: Facts, scope: Scope, query: Query) -> Shown:
    if not facts.is_cluster:
        words = "Nothing waits here: a container that does not fit is refused, and says why. "
        return Shown("Nothing waits on one machine.", joined(nothing(words), _wait_for()))
    found = [each for each in facts.waiting if scope.sees(each.namespace)]
    chosen = [
        each
        for each in found
        if query.namespace in {"", each.namespace} and query.matches(each.name, each.namespace, each.why.lower())
    ]
    if not chosen:
        words = "No pod waits for a card." if not found else "No pod that waits matches."
        return Shown(words, nothing(words))
    longest = since(found[0].since, facts.at)
    rows, pages = paged(chosen, query)
    summary = f"{counted(len(found), 'pod waits', 'pods wait')}, the longest for {longest}."
    return Shown(summary, joined(table("Pods that wait", _HEADS, (_row(each, facts) for each in rows)), pages))


def _wait_for() -> Html:
    return tag("p", "To wait until there is room: ", code("partage wait-for"), class_="nothing")


def _row(pod: PodFact, facts: Facts) -> tuple[str, ...]:
    name = two(pod.name, pod.namespace)
    why = joined("To grow, on its own card: ", pod.why) if pod.node else pod.why
    explained = code(f"partage explain {pod.title}")
    advice = joined(tag("span", remedy(pod, facts.frees)), tag("br"), explained)
    return name, since(pod.since, facts.at), pod.asks, why, advice


def remedy(pod: PodFact, frees: tuple[Free, ...]) -> str:
    """By the amounts alone; the scheduler's own message covers policies, CPU, quotas and gangs."""
    if pod.node:
        return "Room on the card that it has: less of others there."
    if not frees:
        return "A node in force with a card that is shared: there is none."
    if pod.needs is None:
        return "The whole answer:"
    nearest = min(frees, key=lambda each: _distance(each, pod.needs))
    return _in_words(nearest, pod.needs)


def _distance(free: Free, needs: Needs | None) -> float:
    if needs is None:
        return 0.0
    share, memory = free.lacks(needs)
    return share / 1000 + memory / max(1, free.of_bytes)


def _in_words(free: Free, needs: Needs) -> str:
    share, memory = free.lacks(needs)
    each = f"It needs {needs.cards} cards at once. " if needs.cards > 1 else ""
    if not share and not memory:
        return f"{each}One card has room for that much: something else keeps it, see the reason."
    less = " and ".join([f"{share} milli"] * bool(share) + [amount(memory)] * bool(memory))
    has = f"{each}The nearest card has {free.milli} milli and {amount(free.memory_bytes)} free"
    return f"{has}: it fits with {less} less, or when as much is given back."
