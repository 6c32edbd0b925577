"""What the child that calls the driver for checkpoints and its parent say to each other. Pure."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from partage_gpu.nvml.wire import Ended, Packets

LONGEST_WHY: Final = 600


class Step(StrEnum):
    """Functions of the driver that it calls."""

    LOOK = "cuCheckpointProcessGetState"
    LOCK = "cuCheckpointProcessLock"
    GO = "cuCheckpointProcessCheckpoint"
    COME = "cuCheckpointProcessRestore"
    UNLOCK = "cuCheckpointProcessUnlock"


class ProcessStand(IntEnum):
    """A process, as the driver counts."""

    RUNS = 0
    LOCKED = 1
    AWAY = 2
    FAILED = 3
    ENDED = -1
    """By our own count: there is no such process any more."""
    UNKNOWN = -2
    """As the last: the driver does not say, as of one that does not use it."""


class Call(Struct, frozen=True, tag="call"):
    step: Step
    pid: Annotated[int, Meta(gt=0)]
    start: int
    """When that began: tells it from another of the same pid."""
    patience_ms: Annotated[int, Meta(ge=0, lt=1 << 32)] = 0
    """Of `LOCK`; 0: for ever."""


class Opened(Struct, frozen=True, tag="opened"):
    """The driver is open, and answers from now on."""

    why: Annotated[str, Meta(max_length=LONGEST_WHY)] = ""
    """Or it has no checkpoints, and why."""


class Called(Struct, frozen=True, tag="called"):
    """One call has returned: CUDA's number, and where the process stands then."""

    number: int
    stand: ProcessStand


Told = Opened | Called | Ended
WORDS: Final = Packets[Call, Told](Call, Told)
