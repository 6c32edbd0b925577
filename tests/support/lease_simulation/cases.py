"""The inputs of a simulation. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from partage_isolation.timeslices.durations import MS, SECOND, Timing
from partage_isolation.timeslices.policies import Gemini
from support.lease_simulation.workloads import US, Workload


class What(Enum):
    """Events that can happen to a process."""

    STOPS = "stops"
    GOES_ON = "goes on"
    DIES = "dies"


class Trouble(NamedTuple):
    """An event at this time after the beginning, for the process with this number."""

    at_ns: int
    what: What
    process: int = 0


@dataclass(frozen=True)
class Container:
    """A container that shares the cards."""

    share: int
    workload: Workload
    limit: int = 1000
    processes: int = 1
    cards: tuple[int, ...] = (0,)
    """Cards, each of which gets `processes` of its processes."""
    gang: str = ""
    """A gang of pods, whose containers take part in the same collectives."""
    begins_ns: int = 0
    troubles: tuple[Trouble, ...] = ()

    @property
    def size(self) -> int:
        """Number of its processes."""
        return self.processes * len(self.cards)


@dataclass(frozen=True)
class Case:
    """One simulated node and its parameters."""

    containers: tuple[Container, ...]
    policy: str = "virtual-time"
    lasts_ns: int = 20 * SECOND
    skip_ns: int = SECOND
    """Warm-up time, which is not measured."""
    seed: int = 1
    timing: Timing = Timing()  # noqa: RUF009 - it is frozen
    gemini: Gemini = Gemini()  # noqa: RUF009 - as above
    knows_gangs: bool = True
    """Whether the broker knows the gangs: they are on one node, and were declared."""
    tells_stopped: bool = True
    """Whether the broker checks if a silent process is stopped."""

    sends_ns: int = 40 * US
    """Delay of a message to the broker, including its processing."""
    wakes_ns: int = 60 * US
    """Delay from a line's update until a thread runs again: with the message, a hand-over takes 0.1 ms."""
    grain_ns: int = MS
    """Maximum lateness of the broker's timers."""
    launches_ns: int = 5 * US
    idle_ns: int = 500 * US
    window_ns: int = MS
