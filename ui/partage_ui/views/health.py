"""What is wrong, and which command helps. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_cli.doctor.findings import About, Finding, Severity
from partage_cli.tables import amount
from partage_ui.facts import Facts, Scope
from partage_ui.html import Html, joined, tag
from partage_ui.views.parts import Query, Shown, badge, code, counted, nothing, paged, table

_HEADS: Final = ("Where", "How bad", "What", "What to type")
_KINDS: Final = {Severity.WRONG: ("wrong", "bad"), Severity.WARNING: ("warning", "warn")}
_FULL: Final = 0.95


def health(facts: Facts, scope: Scope, query: Query) -> Shown:
    found = sorted(findings(facts, scope), key=lambda each: each.status is not Severity.WRONG)
    chosen = [
        each
        for each in found
        if query.matches(each.check, each.found.lower())
        and (not query.namespace or each.check.startswith(f"{query.namespace}/"))
    ]
    hint = "" if scope.sees_all else "What is wrong with nodes shows to those who may list nodes, and pods everywhere."
    note = nothing(hint) if hint else None
    if not chosen:
        words = "Nothing is found wrong." if not found else "No finding matches."
        return Shown(words, joined(nothing(words), note))
    rows, pages = paged(chosen, query)
    wrong = sum(each.status is Severity.WRONG for each in found)
    summary = f"{counted(len(found), 'finding')}, of which {wrong} must be mended."
    return Shown(summary, joined(table("Findings", _HEADS, map(_row, rows)), pages, note))


def _row(each: Finding) -> tuple[str, ...]:
    words, kind = _KINDS.get(each.status, ("", "quiet"))
    return each.check, badge(words, kind), each.found, _advice(each.advice)


def _advice(advice: str) -> Html:
    """Commands are between backquotes."""
    parts = advice.split("`")
    return tag("span", *(code(part) if place % 2 else part for place, part in enumerate(parts)))


def findings(facts: Facts, scope: Scope) -> Iterator[Finding]:
    if scope.sees_all:
        yield from (
            About("this page").wrong(each, do="see its own log, and its account's rights") for each in facts.troubles
        )
        yield from (
            About("scheduler").wrong(each, do="`kubectl -n partage-system get pods`, then `partage versions`")
            for each in facts.doubts
        )
        yield from _of_nodes(facts)
    yield from _of_workloads(facts, scope)


def _of_nodes(facts: Facts) -> Iterator[Finding]:
    doctor = "`sudo partage doctor`"
    for name, why in facts.nodes.faults.items():
        yield About(name).wrong(f"its inventory can't be read: {why}", do=f"on {name}: {doctor}")
    for node in facts.nodes.nodes:
        name = node.node
        if node.why:
            yield About(name).wrong(f"it is not in force: {node.why}", do=f"on {name}: {doctor}")
        for card in node.cards:
            if card.state != "ok":
                why = card.condition.why or "it does not say why"
                words = f"card {card.index} is {card.state}: {why}"
                about = About(name)
                yield (about.wrong if card.is_lost else about.warning)(words, do=f"on {name}: `nvidia-smi`, {doctor}")
        told = facts.told.get(name)
        if told is not None and told.why and not node.why:
            yield About(name).warning(f"its broker does not tell: {told.why}", do=f"`partage top --node {name}`")
        for sentence in told.findings if told is not None else ():
            yield About(name).wrong(sentence, do=f"on {name}: `sudo partage top`, {doctor}")


def _of_workloads(facts: Facts, scope: Scope) -> Iterator[Finding]:
    for each in facts.workloads:
        if each.held is None or not scope.sees(each.namespace):
            continue
        held, about = each.held, About(each.title)
        if each.short_by:
            words = f"{each.name} got less of card {each.index} than it wanted and was promised"
            yield about.wrong(
                words, do=f"`partage top --node {each.node}`" if facts.is_cluster else "`sudo partage top`"
            )
        if held.refused and held.charged_bytes >= _FULL * held.limit_bytes:
            words = f"{each.name} is at its limit of {amount(held.limit_bytes)}, and was refused {held.refused} times"
            advice = f"`partage resize {each.title} --memory …`" if facts.is_cluster else "a larger PARTAGE_MEMORY"
            yield about.warning(words, do=f"if it should have more: {advice}")


def trouble(facts: Facts) -> Html | None:
    """Shown above every view while its facts may be out of date."""
    if not facts.troubles:
        return None
    return tag("div", *(tag("p", each) for each in facts.troubles), class_="trouble", role="status")
