"""Messages between the child process that calls the driver for checkpoints and its parent. Pure."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from partage_gpu.nvml.wire import Ended, Packets

LONGEST_WHY: Final = 600


class Step(StrEnum):
    """The driver's functions that it calls."""

    LOOK = "cuCheckpointProcessGetState"
    LOCK = "cuCheckpointProcessLock"
    GO = "cuCheckpointProcessCheckpoint"
    COME = "cuCheckpointProcessRestore"
    UNLOCK = "cuCheckpointProcessUnlock"


class CheckpointState(IntEnum):
    """A process's state, with the driver's numbers."""

    RUNS = 0
    LOCKED = 1
    AWAY = 2
    FAILED = 3
    ENDED = -1
    """Our own value: the process no longer exists."""
    UNKNOWN = -2
    """Our own value: the driver does not report it, as for a process that does not use it."""


class Call(Struct, frozen=True, tag="call"):
    step: Step
    pid: Annotated[int, Meta(gt=0)]
    start: int
    """Start time: tells the process from another with the same pid."""
    patience_ms: Annotated[int, Meta(ge=0, lt=1 << 32)] = 0
    """Timeout of `LOCK`; 0: none."""


class Opened(Struct, frozen=True, tag="opened"):
    """The driver is open, and calls are possible."""

    why: Annotated[str, Meta(max_length=LONGEST_WHY)] = ""
    """Or why it has no checkpoints."""


class Called(Struct, frozen=True, tag="called"):
    """One call has returned: CUDA's number, and the process's state after it."""

    number: int
    stand: CheckpointState


BrokerReport = Opened | Called | Ended
WORDS: Final = Packets[Call, BrokerReport](Call, BrokerReport)
