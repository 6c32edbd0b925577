"""Parses simgpud's reply to `status` into types. Pure.

node driver=580.95.05 boot=... cards=1 ...
card 0 uuid=GPU-... used=541065216 peak=... memory=... reserved=... health=healthy xid=0
process 4711 card=0 row=0 bytes=541065216 peak=... busy_ns=... fault=0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from partage_simgpu.errors import NodeFailed

_LOST: Final = "lost"


class ProcessStatus(msgspec.Struct, frozen=True):
    """A process that has a context on a card."""

    pid: int
    bytes: int
    peak_bytes: int
    busy_ns: int
    """Time that it received of the card."""
    fault: int
    """The error that each of its calls returns; 0: none."""


class CardStatus(msgspec.Struct, frozen=True):
    """Current state of a card or MIG instance."""

    used_bytes: int
    """Used by processes; excludes the driver's reserved memory."""
    peak_bytes: int
    total_bytes: int
    """Available to all processes together."""
    lost: bool
    last_xid: int
    processes: tuple[ProcessStatus, ...]


def statuses_of(text: str) -> dict[int, CardStatus]:
    lines = [line.split() for line in text.splitlines()]
    try:
        processes = [(int(_values(line)["card"]), _process(line)) for line in lines if line[:1] == ["process"]]
        return {int(line[1]): _card(line, processes) for line in lines if line[:1] == ["card"]}
    except (KeyError, ValueError, IndexError) as error:
        raise NodeFailed(f"simgpud's status cannot be read ({error}); is it of this version?") from error


def _card(line: Sequence[str], processes: Sequence[tuple[int, ProcessStatus]]) -> CardStatus:
    values = _values(line)
    return CardStatus(
        used_bytes=int(values["used"]),
        peak_bytes=int(values["peak"]),
        total_bytes=int(values["memory"]) - int(values["reserved"]),
        lost=values["health"] == _LOST,
        last_xid=int(values["xid"]),
        processes=tuple(process for card, process in processes if card == int(line[1])),
    )


def _process(line: Sequence[str]) -> ProcessStatus:
    values = _values(line)
    return ProcessStatus(
        pid=int(line[1]),
        bytes=int(values["bytes"]),
        peak_bytes=int(values["peak"]),
        busy_ns=int(values["busy_ns"]),
        fault=int(values["fault"]),
    )


def _values(line: Sequence[str]) -> Mapping[str, str]:
    return dict(word.split("=", 1) for word in line[2:])
