"""What is simulated. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from partage_isolation.leases.durations import MS, SECOND, Timing
from partage_isolation.leases.policies import Gemini
from support.lease_simulation.workloads import US, Workload


class What(Enum):
    """What can happen to a process."""

    STOPS = "stops"
    GOES_ON = "goes on"
    DIES = "dies"


class Trouble(NamedTuple):
    """It happens at that time after the beginning to the process of that number."""

    at_ns: int
    what: What
    process: int = 0


@dataclass(frozen=True)
class Container:
    """One that shares the cards."""

    share: int
    workload: Workload
    limit: int = 1000
    processes: int = 1
    cards: tuple[int, ...] = (0,)
    """Each process runs on one of them, in turn."""
    gang: str = ""
    """Of pods; its containers have their collectives together."""
    begins_ns: int = 0
    troubles: tuple[Trouble, ...] = ()

    @property
    def size(self) -> int:
        """How many processes it has."""
        return self.processes * len(self.cards)


@dataclass(frozen=True)
class Case:
    """A node, for a while."""

    containers: tuple[Container, ...]
    policy: str = "virtual-time"
    lasts_ns: int = 20 * SECOND
    skip_ns: int = SECOND
    """Not measured: so long things settle."""
    seed: int = 1
    timing: Timing = Timing()  # noqa: RUF009 - it is frozen
    gemini: Gemini = Gemini()  # noqa: RUF009 - as above
    knows_gangs: bool = True
    """The broker is told of them: they are on one node, and were declared."""
    tells_stopped: bool = True
    """The broker looks whether a silent process is stopped."""

    sends_ns: int = 40 * US
    """A message to the broker, and its work on it."""
    wakes_ns: int = 60 * US
    """From a write to a line until a thread runs again: with the message a hand-over of 0.1 ms."""
    grain_ns: int = MS
    """The broker's timers are late by that at most."""
    launches_ns: int = 5 * US
    idle_ns: int = 500 * US
    window_ns: int = MS
