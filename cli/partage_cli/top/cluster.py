"""Output of ``partage top`` about all nodes: a line for each container and card. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from partage_cli.tables import amount, pod_name, printable, short_id, table
from partage_cli.top.grantees import grantees
from partage_cli.top.nodes import AllReports
from partage_cli.top.shown import told_fields
from partage_cli.top.times import share_cell
from partage_isolation.wire.messages import BrokerReport, CardHeld
from partage_plugins.api.names import CardId

_HEADER: Final = ("NODE", "CARD", "CONTAINER", "SHARE", "GOT", "MEMORY", "LIMIT", "REFUSED")


def as_table(found: AllReports) -> str:
    """Nodes by name, and their containers by card."""
    return table(_HEADER, (row for node, told in found.told.items() for row in _rows(node, told)))


def fields(found: AllReports) -> dict[str, object]:
    """JSON output: each node in the shape of its own `partage top -o json`; docs/isolation.md documents it."""
    nodes = [{"node": node, "at": found.at, **told_fields(told)} for node, told in found.told.items()]
    return {"nodes": nodes, "silent": found.silent}


def _rows(node: str, told: BrokerReport) -> Iterator[tuple[str, ...]]:
    indices = {card.card: card.index for card in told.cards}
    held = [(card, grantee) for grantee in grantees(told.containers) for card in grantee.cards]
    for card, grantee in sorted(held, key=lambda each: _place(each[0], indices)):
        index = indices.get(card.card)
        shown = short_id(card.card)
        yield (
            printable(node),
            shown if index is None else f"{index} {shown}",
            f"{pod_name(grantee.pod.namespace, grantee.pod.name)}/{grantee.name}",
            share_cell(card),
            "-" if card.time is None else f"{card.time.got.s10 * 100:.0f} %",
            amount(card.charged_bytes),
            amount(card.limit_bytes),
            str(card.refused),
        )


def _place(card: CardHeld, indices: Mapping[CardId, int | None]) -> tuple[int, str]:
    index = indices.get(card.card)
    return (1 << 30 if index is None else index, card.card)
