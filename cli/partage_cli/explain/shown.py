"""Output of ``partage explain``. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_cli.explain.question import Answer
from partage_cli.tables import amount, few, printable, short_id, table
from partage_scheduler.explanation import CardReport, Explained, GivenCard, NodeReport, PodReport

FEW: Final = 10
_FEW_HOLDERS: Final = 3
_HEADER: Final = ("NODE", "CARD", "MODEL", "SHARE LEFT", "MEMORY LEFT", "HELD BY", "IN THE WAY")
_GIVEN: Final = ("CONTAINER", "CARD", "SHARE", "LIMIT", "MEMORY")


def as_text(answer: Answer, *, all_nodes: bool) -> str:
    pod = answer.pod
    lines = [f"{pod.pod}: {pod.state}: {pod.message}", *filter(None, [answer.unread])]
    if pod.given:
        lines += ["", table(_GIVEN, (_given(each) for each in pod.given)).rstrip("\n")]
    if pod.explained is not None:
        lines += _waiting(pod, pod.explained, all_nodes=all_nodes)
    return "".join(f"{printable(line)}\n" for each in lines for line in each.split("\n"))


def _given(each: GivenCard) -> tuple[str, ...]:
    memory = f"{amount(each.memory_bytes)} movable" if each.movable else amount(each.memory_bytes)
    return (each.container, short_id(each.card), str(each.share_milli), str(each.limit_milli), memory)


def _waiting(pod: PodReport, found: Explained, *, all_nodes: bool) -> Iterator[str]:
    if found.needs.cpu_milli or found.needs.memory_bytes:
        yield f"beside cards it needs {found.needs.cpu_milli} milli of CPU, {amount(found.needs.memory_bytes)}"
    if pod.node:
        yield f"it is nominated to {pod.node}: what it needs there is kept for it"
    shown = found.nodes if all_nodes else found.nodes[:FEW]
    if shown:
        yield ""
        yield table(_HEADER, (row for node in shown for row in _rows(node))).rstrip("\n")
    if len(found.nodes) > len(shown):
        yield f"and {len(found.nodes) - len(shown)} more nodes: --all-nodes"
    yield from _ways_out(pod, found)


def _ways_out(pod: PodReport, found: Explained) -> Iterator[str]:
    if found.goes_to is not None:
        return
    yield ""
    for name in found.absent:
        yield f"no node has {name}, and partage reads no such word"
    for help_ in found.helps:
        yield f"would fit on {help_.node} with {help_.change}"
    if (displaced := pod.displaces) is not None:
        pods = (f"{pod} (is suspended)" if pod in displaced.suspended else pod for pod in displaced.pods)
        who = ", ".join(pods) or "pods that are being deleted or suspended already"
        against = f", {displaced.violations} of them against a budget" if displaced.violations else ""
        yield f"would fit on {displaced.node} by preemption, after these make room{against}: {who}"
    elif not found.helps and not found.absent:
        yield "no single change was found with which it would fit"


def _rows(node: NodeReport) -> Iterator[tuple[str, ...]]:
    yield (node.node, "", "", "", "", "", "; ".join(node.reasons) or "nothing")
    yield from (_card(card) for card in node.cards)


def _card(card: CardReport) -> tuple[str, ...]:
    return (
        "",
        short_id(card.card),
        card.model,
        str(card.share_left_milli),
        _memory(card),
        few(card.holders, _FEW_HOLDERS) or "nobody",
        "; ".join(card.obstacles) or "nothing",
    )


def _memory(card: CardReport) -> str:
    left = amount(max(0, card.memory_left_bytes))
    if not card.beyond_bytes:
        return left
    return f"{left} (+{amount(card.beyond_bytes)} beyond it, {amount(card.promised_bytes)} promised)"
