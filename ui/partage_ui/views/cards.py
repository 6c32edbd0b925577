"""Which cards have room, which are used, and which pods are on them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_cli.nodes.reports import NodeReport
from partage_cli.tables import amount, short_id
from partage_plugins.api import Card
from partage_plugins.api.gpu import HANDED_OUT_BY
from partage_plugins.api.limits import WHOLE_MILLI
from partage_ui.facts import CardView, Facts, Scope
from partage_ui.html import Html, joined, tag
from partage_ui.views.parts import Query, Shown, badge, counted, milli, nothing, paged, stacked, table, two

_HEADS: Final = ("Card", "State", "Time", "Memory", "Who sits there")
_FEW: Final = 4


def cards(facts: Facts, scope: Scope, query: Query) -> Shown:
    """Viewers who may not list nodes see only cards with pods of theirs, and only their own part of these."""
    found: Sequence[tuple[NodeReport, Card]] = facts.cards
    if not scope.nodes:
        found = [each for each in found if any(scope.sees(who.partition("/")[0]) for who in _who(facts.view(*each)))]
    is_filtered = bool(query.text or query.namespace)
    chosen = [each for each in found if _is_asked(facts.view(*each), query, scope)] if is_filtered else found
    if not chosen:
        words = "No card is known here." if not found else "No card matches."
        hint = "" if scope.nodes else " Cards without pods of yours show to those who may list nodes."
        return Shown(words, nothing(words + hint))
    sick = sum(card.state != "ok" or bool(node.why) for node, card in found)
    told = f"{counted(sick, 'is', 'are')} not in force" if sick else "all are in force"
    rows, pages = paged(chosen, query)
    body = table("Cards", _HEADS, (_row(facts.view(*each), scope) for each in rows))
    return Shown(f"{counted(len(found), 'card')}; {told}.", joined(body, _key(), pages))


def _is_asked(each: CardView, query: Query, scope: Scope) -> bool:
    who = [name for name in _who(each) if scope.sees(name.partition("/")[0])]
    in_namespace = not query.namespace or any(name.startswith(f"{query.namespace}/") for name in who)
    return in_namespace and query.matches(each.node.node, each.card.id.lower(), each.card.model.lower(), *who)


def _who(each: CardView) -> list[str]:
    """Titles of its pods, from allocations and from the broker's report."""
    return list(dict.fromkeys([pod.title for pod, _ in each.holders] + [one.title for one in each.workloads]))


def _row(each: CardView, scope: Scope) -> tuple[str, ...]:
    card = each.card
    name = two(f"{each.node.node} · {card.index}", f"{card.model}, {short_id(card.id)}")
    if card.pool != "shared":
        handed = tag("small", f"{HANDED_OUT_BY[card.pool]} hands it out")
        return name, _state(each), handed, joined(_memory(each), _memory_words(each)), _names(each, scope)
    time: str
    if scope.nodes:
        time = joined(_time(each), tag("small", f"{each.share_milli} promised, {milli(each.got)} used of 1000 milli"))
    else:
        mine = sum(usage.share_milli for pod, usage in each.holders if scope.sees(pod.namespace))
        return (
            name,
            _state(each),
            tag("small", f"{mine} milli are yours"),
            _own_memory(each, scope),
            _names(each, scope),
        )
    return name, _state(each), time, joined(_memory(each), _memory_words(each)), _names(each, scope)


def _own_memory(each: CardView, scope: Scope) -> Html:
    mine = sum(usage.memory_bytes for pod, usage in each.holders if scope.sees(pod.namespace))
    return tag("small", f"{amount(mine)} are yours")


def _state(each: CardView) -> Html:
    if each.node.why:
        return joined(badge("not in force", "bad"), tag("small", each.node.why))
    if each.card.state != "ok":
        kind = "bad" if each.card.is_lost else "warn"
        return joined(badge(each.card.state, kind), tag("small", each.card.condition.why or ""))
    return badge("in force", "good")


def _time(each: CardView) -> Html:
    label = f"{each.share_milli} milli promised, {milli(each.got)} used in the last minute"
    return stacked(label, ("promised", each.share_milli / WHOLE_MILLI), ("got", each.got))


def _memory(each: CardView) -> Html:
    whole = max(1, each.card.memory_bytes)
    used = each.used_bytes or 0
    label = f"{amount(each.promised_bytes)} promised, {amount(used)} used of {amount(whole)}"
    return stacked(label, ("promised", each.promised_bytes / whole), ("got", used / whole))


def _memory_words(each: CardView) -> Html:
    used = "use not told" if each.used_bytes is None else f"{amount(each.used_bytes)} used"
    beyond = f" +{amount(each.card.beyond_bytes)}" if each.card.beyond_bytes else ""
    return tag("small", f"{amount(each.promised_bytes)} promised, {used} of {amount(each.card.memory_bytes)}{beyond}")


def _names(each: CardView, scope: Scope) -> Html:
    who = _who(each)
    seen = [name for name in who if scope.sees(name.partition("/")[0])]
    more = len(who) - len(seen[:_FEW])
    if not who:
        return tag("small", "nobody")
    parts = [tag("li", name) for name in seen[:_FEW]]
    return tag("ul", *parts, tag("li", f"and {more} more") if more else None, class_="names")


def _key() -> Html:
    return tag("p", "A bar is what is used, pale what is promised, of all that the card has.", class_="key")
