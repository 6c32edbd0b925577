"""Floods in containers, and the card's progress with each, by their own account over the same period.

    with flooding(place, Flood(share=300, kernel_us=1000), Flood(share=700, kernel_us=1000)) as floods:
        parts = parts_of_time(floods, seconds=4)

Kernels are work of a known length, not a wait: a flood that shares the card's time completes fewer of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

from real_card.ground import built_programs, driver_file, driver_past, user_environment
from real_card.stages.place import Container, Place

SETTLES_S: Final = 1.5
STARTS_S: Final = 30.0
_MOST_SAID: Final = 1 << 20


@dataclass(frozen=True)
class Flood:
    share: int
    kernel_us: float
    how: str = "queue"
    limit: int = 1000
    absolute: bool = False
    """Whether it bypasses the library by the driver's own path."""
    environment: tuple[tuple[str, str], ...] = ()


@cache
def rounds_per_us() -> str:
    """Rounds of work per microsecond of the card, measured while the card does nothing else."""
    argv = [str(built_programs() / "flood"), "calibrate"]
    return subprocess.run(argv, env=user_environment(), capture_output=True, text=True, check=True).stdout.strip()


class Running:
    def __init__(self, flood: Flood, environment: Mapping[str, str], container: Container | None) -> None:
        self.flood, self.container = flood, container
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  as long as the flood
        argv = [str(built_programs() / "flood"), flood.how, str(flood.kernel_us), rounds_per_us()]
        if flood.how == "past":
            argv.append(str(driver_file("libcuda.so.1") if flood.absolute else driver_past()))
        everything = {**environment, **dict(flood.environment)}
        self.process = subprocess.Popen(argv, env=everything, stdout=self._said)

    def lines(self) -> list[tuple[float, int]]:
        """Times, and kernels completed by then; raises `RuntimeError` if it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"a flood by {self.flood.how!r} ended with {self.process.returncode}")
        whole = os.pread(self._said.fileno(), _MOST_SAID, 0).decode().split("\n")[:-1]
        return [(float(at), int(kernels)) for at, kernels in (line.split() for line in whole)]

    def end(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._said.close()

    def done_s(self, begin: float, end: float) -> float:
        """Seconds of card time that it had between two moments."""
        points = self.lines()
        return (_at(points, end) - _at(points, begin)) * self.flood.kernel_us * 1e-6


def _at(points: Sequence[tuple[float, int]], moment: float) -> float:
    """Kernels completed at a moment, interpolated between the lines around it."""
    before = max((each for each in points if each[0] <= moment), default=points[0])
    after = min((each for each in points if each[0] > moment), default=before)
    if after[0] == before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * (moment - before[0]) / (after[0] - before[0])


@contextmanager
def flooding(place: Place, *floods: Flood) -> Generator[list[Running]]:
    """Each in a separate container; all have begun."""
    rounds_per_us()
    with ExitStack() as stack:
        running = []
        for flood in floods:
            container = place.container(memory=place.memory // 4, share=flood.share, limit=flood.limit)
            running.append(Running(flood, container.environment, container))
            stack.callback(running[-1].end)
        _begun(running)
        yield running


@contextmanager
def bare_flood(flood: Flood) -> Generator[Running]:
    rounds_per_us()
    running = Running(flood, user_environment(), None)
    try:
        _begun([running])
        yield running
    finally:
        running.end()


def _begun(floods: Sequence[Running]) -> None:
    until = time.monotonic() + STARTS_S
    while not all(len(each.lines()) > 1 for each in floods):
        if time.monotonic() > until:
            raise RuntimeError("a flood does not begin")
        time.sleep(0.02)


def parts_of_time(floods: Sequence[Running], seconds: float) -> list[float]:
    """Each flood's part of the card's time."""
    time.sleep(SETTLES_S)
    begin = time.monotonic()
    time.sleep(seconds)
    end = time.monotonic()
    time.sleep(0.25)  # for the line after the end
    return [round(each.done_s(begin, end) / (end - begin), 4) for each in floods]
