"""Allocations against inventories: every card exists, and no part of a card is allocated twice. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from partage_cli.audit.observation import SeenCluster, SeenNode, SeenPod
from partage_cli.doctor.findings import About, Finding
from partage_cli.tables import age
from partage_plugins.api import GPU, Card, CardId
from partage_plugins.api.card_memory import Promised, in_words, together
from partage_plugins.api.gpu import HANDED_OUT_BY
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.usage import Usage, usages

_SILENT_AFTER_S: Final = 40.0
_MOVE: Final = "delete the pod: it is placed again"
Cards = Mapping[CardId, Card]
Uses = Sequence[tuple[SeenPod, Usage]]


def nodes(cluster: SeenCluster) -> Iterator[Finding]:
    """Nodes whose pods hold cards exist, report an inventory, and have a recent heartbeat."""
    about, uses = About("nodes"), _uses(cluster)
    found = [
        finding
        for name in sorted(uses)
        for finding in _of_node(about, cluster.nodes.get(name), name, len({pod.pod.uid for pod, _ in uses[name]}))
    ]
    yield from found or [about.ok(f"{len(uses)} nodes with pods that hold cards, all heard of")]


def cards(cluster: SeenCluster) -> Iterator[Finding]:
    """Every card in use exists, belongs to the pool `shared`, and is not overcommitted."""
    about, uses = About("cards"), _uses(cluster)
    known = {name: there for name in sorted(uses) if (there := _cards_of(cluster.nodes.get(name))) is not None}
    found = [
        finding
        for name, there in known.items()
        for finding in (*_strange(about, name, uses[name], there), *_too_much(about, name, uses[name], there))
    ]
    number = sum(map(len, known.values()))
    yield from found or [about.ok(f"{number} cards of nodes with such pods: none is given away twice")]


def _uses(cluster: SeenCluster) -> dict[str, list[tuple[SeenPod, Usage]]]:
    """What pods hold of cards, by node."""
    found: dict[str, list[tuple[SeenPod, Usage]]] = {}
    for each in cluster.pods:
        for usage in () if each.allocation is None else usages(each.allocation):
            found.setdefault(each.pod.node, []).append((each, usage))
    return found


def _cards_of(node: SeenNode | None) -> Cards | None:
    """The node's cards; None without an inventory, which `nodes` reports."""
    if node is None or node.inventory is None:
        return None
    part = node.inventory.part(GPU)
    return {} if part is None else {card.id: card for card in part.cards}


def _of_node(about: About, node: SeenNode | None, name: str, pods: int) -> Iterator[Finding]:
    who = f"node {name}, with {pods} pods that hold cards,"
    if node is None:
        yield about.wrong(f"{who} is gone", do="delete the pods that are bound to it")
        return
    if node.fault:
        yield about.wrong(f"{who} can't be understood: {node.fault}", do="look at its advertiser's log")
    elif node.inventory is None:
        yield about.wrong(f"{who} says of no cards", do="start its advertiser")
    elif not node.inventory.ready.crishim:
        yield about.wrong(f"{who} has a kubelet that speaks past crishim", do="`partage doctor` on the node")
    if node.beat_age_s is None or node.beat_age_s > _SILENT_AFTER_S:
        when = "was never heard of" if node.beat_age_s is None else f"was last heard of {age(node.beat_age_s)} ago"
        yield about.warning(f"{who} {when}: what it says may be old", do="look at its advertiser's log")


def _strange(about: About, node: str, uses: Uses, known: Cards) -> Iterator[Finding]:
    for pod, usage in uses:
        card, who = known.get(usage.card), f"pod {pod.name} holds card {usage.card} of node {node},"
        if card is None:
            yield about.wrong(f"{who} which is not there", do=_MOVE)
        elif card.is_lost:
            yield about.warning(f"{who} which is {card.condition}", do=_MOVE)
        elif card.pool != "shared":
            yield about.wrong(
                f"{who} which {HANDED_OUT_BY[card.pool]} hands out, too", do="reserve the card for one of both"
            )


def _too_much(about: About, node: str, uses: Uses, known: Cards) -> Iterator[Finding]:
    """What exceeds a card. Others may have the room of suspended pods."""
    by_card: dict[CardId, list[tuple[SeenPod, Usage]]] = {}
    for pod, usage in uses:
        if pod.allocation is not None and pod.allocation.suspended is None:
            by_card.setdefault(usage.card, []).append((pod, usage))
    for id_, held in by_card.items():
        names = ", ".join(pod.name for pod, _ in held)
        share = sum(usage.share_milli for _, usage in held)
        memory = together(usage.memory for _, usage in held)
        where = f"card {id_} of node {node}, held by {names}:"
        if share > WHOLE_MILLI:
            yield about.wrong(f"{where} {share} milli of it are given away", do=_MOVE)
        card = known.get(id_)
        if card is not None and not card.capacity.keeps(memory):
            yield about.wrong(f"{where} {_given_away(card, memory)}", do=_MOVE)


def _given_away(card: Card, memory: Promised) -> str:
    if card.beyond_bytes:
        return f"more memory is promised than can be kept ({in_words(card.capacity, memory)})"
    return f"{memory.total} of its {card.memory_bytes} bytes are given away"
