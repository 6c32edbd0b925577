"""Output of ``partage simgpu`` about nodes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from partage_cli.tables import table
from partage_simgpu.node import CardReport, NodeReport

_HEADER: Final = ("NODE", "STATE", "CARD", "NAME", "USED", "PROCESSES")
_WIDE: Final = (*_HEADER, "UUID", "ROOT")
_MIB: Final = 1 << 20


def as_table(nodes: Sequence[NodeReport], *, wide: bool) -> str:
    """A table with one line for each card."""
    return table(_WIDE if wide else _HEADER, _rows(nodes, wide=wide))


def as_json(nodes: Sequence[NodeReport]) -> bytes:
    """A JSON list of nodes."""
    return msgspec.json.encode(nodes) + b"\n"


def summary(node: NodeReport) -> str:
    """`node lab: 2 x NVIDIA L4`; MIG instances are counted as cards."""
    kinds = Counter(card.name for card in node.cards)
    return f"node {node.name}: " + ", ".join(f"{count} x {name}" for name, count in kinds.items())


def _rows(nodes: Sequence[NodeReport], *, wide: bool) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        for card in node.cards:
            more = (card.uuid, node.root) if wide else ()
            yield (node.name, _state(node, card), str(card.index), _name(card), _used(card), _processes(card), *more)


def _state(node: NodeReport, card: CardReport) -> str:
    if node.pid is None:
        return "stopped"
    return "lost" if card.status is not None and card.status.lost else "running"


def _name(card: CardReport) -> str:
    return f"- {card.name}" if card.is_instance else card.name


def _used(card: CardReport) -> str:
    if card.status is None:
        return "-"
    return f"{-(-card.status.used_bytes // _MIB)} of {card.status.total_bytes // _MIB} MiB"


def _processes(card: CardReport) -> str:
    if card.status is None:
        return "-"
    return ", ".join(str(process.pid) for process in card.status.processes) or "none"
