"""What the child that asks NVML for processes and its parent say to each other. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from partage_gpu.nvml.wire import Ended, Packets

MOST_PROCESSES: Final = 10_000
"""On one card: so many fit into a message."""
LONGEST_TEXT: Final = 1000
LONGEST_GROUP: Final = 700
"""Bytes of a control group's path; the driver's own words are with it in an answer."""
Bytes = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
"""Of the driver, so of any kind; it is logged."""


class AskUse(Struct, frozen=True, tag="use"):
    """What processes hold of a card or MIG instance."""

    card: str


class AskLimit(Struct, frozen=True, tag="limit"):
    """The driver itself is to hold the processes of a control group to so much of a card."""

    card: str
    group: str
    """The group's folder."""
    bytes: Bytes


class Ready(Struct, frozen=True, tag="ready"):
    """The driver is open: from now on answers come quickly."""

    has_limits: bool = False
    """It has the function by which it holds control groups to limits."""


class Used(Struct, frozen=True, tag="used"):
    card: str
    taken_ns: int
    processes: tuple[tuple[Annotated[int, Meta(ge=0)], Bytes | None], ...]
    """Pids, each once, and their bytes; None: the driver does not say."""

    def __post_init__(self) -> None:
        if len(dict(self.processes)) != len(self.processes):
            raise ValueError("a process that is named twice")


class Unseen(Struct, frozen=True, tag="unseen"):
    """The answer where the driver says of no process on that card what it holds."""

    card: str
    taken_ns: int


class Limited(Struct, frozen=True, tag="limited"):
    """What the driver said to `AskLimit`."""

    card: str
    group: str
    number: int
    """NVML's; 0: it is in force."""
    why: Text = ""


class CardRefused(Struct, frozen=True, tag="refused"):
    """The driver has no answer for this card; others may."""

    card: str
    why: Text


Question = AskUse | AskLimit
Told = Ready | Used | Unseen | Limited | CardRefused | Ended
WORDS: Final = Packets[Question, Told](Question, Told, form=msgspec.msgpack)
"""Not as text: a card may have many processes."""
