"""All views by path, the most important first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from partage_ui.facts import Facts, Scope
from partage_ui.html import Html, joined, tag
from partage_ui.views.cards import cards
from partage_ui.views.health import health, trouble
from partage_ui.views.idle import idle
from partage_ui.views.namespaces import namespaces
from partage_ui.views.parts import Query, Shown
from partage_ui.views.pending import pending
from partage_ui.views.workloads import workloads


class View(NamedTuple):
    title: str
    show: Callable[[Facts, Scope, Query], Shown]


VIEWS: Final[Mapping[str, View]] = {
    "waiting": View("Waiting", pending),
    "workloads": View("Workloads", workloads),
    "cards": View("Cards", cards),
    "idle": View("Held, not used", idle),
    "namespaces": View("Namespaces", namespaces),
    "health": View("Health", health),
}
FIRST: Final = "waiting"


def fragment(view: View, facts: Facts, scope: Scope, query: Query) -> Html:
    """The part of a page that is updated."""
    shown = view.show(facts, scope, query)
    note = tag("p", scope.note, class_="key") if scope.note else None
    stood = tag("p", f"As of {facts.at:%H:%M:%S} UTC", class_="key stood")
    lead = tag("p", shown.summary, class_="lead", id="summary")
    return joined(lead, trouble(facts), note, shown.body, stood)
