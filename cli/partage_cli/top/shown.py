"""Output of ``partage top`` about one broker's report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import click
import msgspec

from partage_cli.tables import amount, pod_name, printable, short_id
from partage_cli.top.columns import Column, cut, fitted
from partage_cli.top.grantees import Grantee, grantees
from partage_cli.top.times import time_columns
from partage_isolation.wire.messages import BrokerReport, CardHeld, CardReport, MigrationReport

_BAR: Final = 20
_NONE: Final = "no container has limits here"
_FULL: Final = 0.95
_NEARLY: Final = 0.75
Row = tuple[Grantee, CardHeld]


@dataclass(frozen=True)
class Frame:
    node: str
    at: datetime
    width: int = 0
    """Columns of the terminal; 0 is unlimited."""
    height: int = 0
    """Lines of the terminal; 0 is unlimited."""
    notice: str = ""
    """A note that applies to the whole screen."""
    blocks: bool = True
    """Whether bars may use block characters."""


def as_lines(told: BrokerReport, frame: Frame, *, trouble: str = "") -> list[str]:
    """The whole screen; `trouble` says why the report is out of date."""
    head = [cut(_title(told, frame), frame.width)]
    if frame.notice:
        head.append(click.style(cut(frame.notice, frame.width), fg="yellow"))
    if trouble:
        head.append(click.style(cut(printable(trouble), frame.width), fg="red"))
    cards = fitted(_card_columns(told, frame), frame.width) if told.cards else []
    found = [click.style(cut(f"! {printable(each)}", frame.width), fg="red") for each in told.findings]
    rows = [(grantee, card) for grantee in grantees(told.containers) for card in grantee.cards]
    body = fitted(_container_columns(rows, told, frame), frame.width) if rows else [cut(_NONE, frame.width)]
    above = [*head, "", *_apart(cards), *_apart(found)]
    return _shortened([*above, *body], frame)


def fields(told: BrokerReport, frame: Frame) -> dict[str, object]:
    """JSON output; docs/isolation.md documents the shape."""
    return {"node": frame.node, "at": frame.at, **told_fields(told)}


def told_fields(told: BrokerReport) -> dict[str, Any]:
    """The broker's report by its field names."""
    return {name: value for name, value in msgspec.to_builtins(told).items() if name != "answer"}


def _title(told: BrokerReport, frame: Frame) -> str:
    count = f"{_counted(len(told.cards), 'card')} in use, {_counted(len(told.containers), 'container')}"
    holds = f"holds {_listed(told.enforces)}" if told.enforces else "holds nothing"
    return f"{frame.node}   {count}   broker {printable(told.broker)}, {holds}   {frame.at:%H:%M:%S}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _apart(lines: list[str]) -> list[str]:
    return [*lines, ""] if lines else []


def _card_columns(told: BrokerReport, frame: Frame) -> list[Column]:
    cards = told.cards
    on = [sum(any(held.card == card.card for held in each.cards) for each in told.containers) for card in cards]
    return [
        Column("CARD", 0, tuple(_card_name(card) for card in cards)),
        Column("MODEL", 3, tuple(printable(card.model or "-") for card in cards)),
        Column("", 4, tuple(_bar(card.used_bytes, card.memory_bytes, frame) for card in cards)),
        Column("USED", 1, tuple(amount(card.used_bytes) for card in cards)),
        Column("OF", 1, tuple(amount(card.memory_bytes) for card in cards)),
        Column("CONTAINERS", 2, tuple(map(str, on))),
    ]


def _container_columns(rows: Sequence[Row], told: BrokerReport, frame: Frame) -> list[Column]:
    indices = {card.card: card.index for card in told.cards}
    return [
        Column("POD", 0, tuple(pod_name(each.pod.namespace, each.pod.name) for each, _ in rows)),
        Column("CONTAINER", 3, tuple(each.name for each, _ in rows)),
        Column("CARD", 4, tuple(_where(held, indices.get(held.card)) for _, held in rows)),
        Column("", 7, tuple(_bar(held.charged_bytes, held.limit_bytes, frame) for _, held in rows)),
        Column("MEMORY", 1, tuple(amount(held.charged_bytes) for _, held in rows)),
        Column("LIMIT", 2, tuple(_limit(held) for _, held in rows)),
        Column("OVERHEAD", 6, tuple(amount(held.overhead_bytes) for _, held in rows)),
        Column("REFUSED", 5, tuple(_refused(held) for _, held in rows)),
        *_moving_columns([held.moving for _, held in rows]),
        Column("PROCESSES", 6, tuple(_processes(each, held) for each, held in rows)),
        *time_columns([held for _, held in rows], blocks=frame.blocks),
    ]


def _moving_columns(rows: Sequence[MigrationReport | None]) -> list[Column]:
    """Columns for movable memory: how much is on the card and on the host, and for how long it was moving."""
    if not any(rows):
        return []
    return [
        Column("RESIDENT", 2, tuple(amount(each.resident_bytes) if each else "" for each in rows)),
        Column("MOVED", 2, tuple(_moved(each) if each else "" for each in rows)),
        Column("MOVING", 5, tuple(f"{each.seconds:.1f} s, {each.times} x" if each else "" for each in rows)),
    ]


def _moved(told: MigrationReport) -> str:
    return click.style(amount(told.moved_bytes), fg="yellow") if told.is_out else amount(told.moved_bytes)


def _card_name(card: CardReport) -> str:
    return short_id(card.card) if card.index is None else f"{card.index} {short_id(card.card)}"


def _where(held: CardHeld, index: int | None) -> str:
    return short_id(held.card) if index is None else str(index)


def _limit(held: CardHeld) -> str:
    """The memory limit, marked if the driver enforces it, too."""
    by_driver = " +driver" if held.driver_limit_bytes == held.limit_bytes else ""
    if held.limit_bytes < held.granted_bytes:
        return click.style(f"{amount(held.limit_bytes)} (of {amount(held.granted_bytes)}){by_driver}", fg="yellow")
    return f"{amount(held.limit_bytes)}{by_driver}"


def _refused(held: CardHeld) -> str:
    return click.style(str(held.refused), fg="yellow") if held.refused else "0"


def _processes(grantee: Grantee, held: CardHeld) -> str:
    """Processes that use this card, and how many of them are not connected."""
    mine = [each for each in grantee.processes if any(card.card == held.card for card in each.cards)]
    lost = sum(not each.connected for each in mine)
    return f"{len(mine)} ({lost} away)" if lost else str(len(mine))


def _bar(held_bytes: int | None, limit_bytes: int | None, frame: Frame) -> str:
    if held_bytes is None or limit_bytes is None:
        return ""
    part = min(1.0, held_bytes / limit_bytes) if limit_bytes else float(held_bytes > 0)
    full, empty = ("█", "░") if frame.blocks else ("#", ".")
    drawn = min(_BAR, -int(-part * _BAR // 1))  # any amount above 0 is visible
    colour = "red" if part >= _FULL else "yellow" if part >= _NEARLY else "green"
    return click.style(full * drawn, fg=colour) + empty * (_BAR - drawn)


def _shortened(lines: list[str], frame: Frame) -> list[str]:
    if not frame.height or len(lines) <= frame.height:
        return lines
    kept = max(1, frame.height - 1)
    return [*lines[:kept], cut(f"and {len(lines) - kept} more: a higher window shows them", frame.width)]
