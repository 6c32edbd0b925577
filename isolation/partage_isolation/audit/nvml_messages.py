"""Messages between the child process that calls NVML and its parent. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from partage_gpu.nvml.wire import Ended, Packets

MOST_PROCESSES: Final = 10_000
"""Limit for one card, so that all fit into a message."""
LONGEST_TEXT: Final = 1000
LONGEST_GROUP: Final = 700
"""Bytes of a cgroup's path; a response also has the driver's message."""
Bytes = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
"""Text of the driver, for logs; may contain anything."""


class AskUse(Struct, frozen=True, tag="use"):
    """Request for processes' memory on a card or MIG instance."""

    card: str


class AskLimit(Struct, frozen=True, tag="limit"):
    """Request for the driver to limit a cgroup's memory on a card."""

    card: str
    group: str
    """The cgroup's folder."""
    bytes: Bytes


class Ready(Struct, frozen=True, tag="ready"):
    """The driver is open: from now on responses are fast."""

    has_limits: bool = False
    """It has the function that sets limits of cgroups."""


class Used(Struct, frozen=True, tag="used"):
    card: str
    taken_ns: int
    processes: tuple[tuple[Annotated[int, Meta(ge=0)], Bytes | None], ...]
    """Unique pids with their bytes; None: the driver does not report them."""

    def __post_init__(self) -> None:
        if len(dict(self.processes)) != len(self.processes):
            raise ValueError("a process that is named twice")


class Unseen(Struct, frozen=True, tag="unseen"):
    """Response for a card on which the driver reports no process's memory."""

    card: str
    taken_ns: int


class Limited(Struct, frozen=True, tag="limited"):
    """Response to `AskLimit`."""

    card: str
    group: str
    number: int
    """NVML's return code; 0: the limit is in force."""
    why: Text = ""


class CardRefused(Struct, frozen=True, tag="refused"):
    """The driver returned an error for this card; others may work."""

    card: str
    why: Text


Question = AskUse | AskLimit
BrokerReport = Ready | Used | Unseen | Limited | CardRefused | Ended
WORDS: Final = Packets[Question, BrokerReport](Question, BrokerReport, form=msgspec.msgpack)
"""Binary, since a card may have many processes."""
