"""Output of ``partage nodes``. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from partage_cli.nodes.reports import Heartbeat, NodeReport, Report
from partage_cli.tables import age, printable, short_id, table
from partage_plugins.api import Card, State

_HEADER: Final = ("NODE", "CARD", "MODEL", "MEMORY", "HEALTH", "POOL", "READY", "DRIVER", "HEARTBEAT", "WHY")
_WIDE: Final = ("ID", "MIG", "PCI", "NUMA", "CC", "CUDA", "KEYS")
_COLOURS: Final[dict[State, str]] = {"ok": "green", "degraded": "yellow", "lost": "red"}
_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"))


def as_table(report: Report, *, wide: bool) -> str:
    """A table with one line for each card, and one for a node without cards.

    It has colours, which `click.echo` strips unless the output is a terminal.
    """
    header = (*_HEADER[:-1], *_WIDE, _HEADER[-1]) if wide else _HEADER
    return table(header, (row for node in report.nodes for row in _rows(node, wide=wide)))


def _rows(node: NodeReport, *, wide: bool) -> Iterator[tuple[str, ...]]:
    for card in node.cards:
        yield (*_cells(node, card), *(_more(node, card) if wide else ()), _why(node.why, card.condition.why or ""))
    if not node.cards:
        blanks = ("-",) * len(_WIDE) if wide else ()
        yield (node.node, "none", "-", "-", "-", "-", *_of_node(node), *blanks, _why(node.why))


def _why(*why: str) -> str:
    """Why the node is not in force, and why the card is not healthy."""
    return printable("; ".join(filter(None, why)) or "-")


def _cells(node: NodeReport, card: Card) -> tuple[str, ...]:
    return (
        node.node,
        f"- {short_id(card.id)}" if card.parent else f"{card.index} {short_id(card.id)}",
        printable(card.model),
        _memory(card),
        click.style(card.state, fg=_COLOURS[card.state]),
        card.pool,
        *_of_node(node),
    )


def _of_node(node: NodeReport) -> tuple[str, str, str]:
    return _ready(node), printable(node.driver or "-"), _beat(node.heartbeat)


def _more(node: NodeReport, card: Card) -> tuple[str, ...]:
    return (
        card.id,
        printable(card.mig_profile or "-"),
        printable(card.pci),
        "-" if card.numa_node is None else str(card.numa_node),
        card.compute_capability,
        printable(node.cuda or "-"),
        printable(",".join(node.keys) or "-"),
    )


def _ready(node: NodeReport) -> str:
    """The daemons in force."""
    names = [name for name, is_ready in (("crishim", node.ready.crishim), ("broker", node.ready.broker)) if is_ready]
    return "+".join(names) or click.style("no", fg="yellow")


def _beat(beat: Heartbeat | None) -> str:
    if beat is None:
        return click.style("none", fg="yellow")
    return click.style(f"stale: {age(beat.age_s)}", fg="yellow") if beat.stale else age(beat.age_s)


def _memory(card: Card) -> str:
    beyond = f" +{_amount(card.beyond_bytes)}" if card.beyond_bytes else ""
    return _amount(card.memory_bytes) + beyond


def _amount(size_bytes: int) -> str:
    unit, name = next(((unit, name) for unit, name in _UNITS if size_bytes >= 8 * unit), _UNITS[-1])
    return f"{size_bytes / unit:.0f} {name}"
