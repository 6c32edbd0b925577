"""Programs in containers that share one simulated card, and the time of each, as accounted by the card.

    with isolated(cards=("t4",), library=built_library()) as place:
        with sharing(place, Sharer("train", 700, "flood"), Sharer("serve", 300, "launch-wait")) as running:
            seconds = watched(place, running, 10)         # a part of the card's time for each, second by second

A program is one of the simulated card's workloads, possibly in several processes; it contains no code of ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from partage_isolation.library.objects import built as built_library
from partage_isolation.wire.messages import TimeReport
from partage_plugins.api.pods import PodRef
from partage_simgpu.build import built as built_programs
from support.isolated import Contained, Isolated, until

FOR_LONG_S: Final = 600
WIDTH: Final = 40
MEMORY: Final = 4 << 30


@dataclass(frozen=True)
class Sharer:
    name: str
    share: int
    program: str
    """A workload's name, or the path of a program that takes `--seconds` like them."""
    words: tuple[str, ...] = ()
    limit: int = 1000
    processes: int = 1
    """In each container."""
    containers: int = 1
    """Of one pod; several share one budget."""
    seconds: float = FOR_LONG_S
    card: int = 0
    gang: str | None = None
    """A gang of two pods, of which this is one."""
    memory_bytes: int = MEMORY
    movable: bool = False


class Running:
    def __init__(self, place: Isolated, sharer: Sharer) -> None:
        self.sharer = sharer
        self.containers = list(_prepared(place, sharer))
        argv = [str(built_programs() / sharer.program), "--seconds", str(sharer.seconds), *sharer.words]
        argv += ["--card", str(sharer.card)]
        self.processes = [
            subprocess.Popen(
                argv,
                env={**os.environ, **place.node.environment, "LD_PRELOAD": container.preload},
                stdout=subprocess.PIPE,
            )
            for container in self.containers
            for _ in range(sharer.processes)
        ]
        self._pids = {process.pid for process in self.processes}

    @property
    def time(self) -> TimeReport | None:
        """The broker's report; None if it does not meter time."""
        return self.containers[0].told().cards[0].time

    def is_known(self) -> bool:
        """Whether the broker knows all its processes, because the library has connected."""
        return self._pids <= {each.pid for container in self.containers for each in container.told().processes}

    def busy_ns(self, account: Mapping[int, int]) -> int:
        """Total time of its processes, by the card's own accounting."""
        ended = [process.args for process in self.processes if process.poll() not in {None, 0}]
        assert not ended, f"{self.sharer.name}: a program failed: {ended}"
        return sum(account.get(pid, 0) for pid in self._pids)

    def lines(self) -> list[dict[str, Any]]:
        """Wait for the programs' last lines."""
        return [json.loads(process.communicate(timeout=FOR_LONG_S)[0]) for process in self.processes]

    def said(self) -> dict[str, Any]:
        """Wait for the first line of its only process."""
        assert self.processes[0].stdout is not None
        return dict(json.loads(self.processes[0].stdout.readline()))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


def _prepared(place: Isolated, sharer: Sharer) -> Iterator[Contained]:
    pod: PodRef | None = None
    for number in range(sharer.containers):
        container = place.prepare(
            sharer.memory_bytes,
            share=sharer.share,
            movable=sharer.movable,
            limit=sharer.limit,
            name=f"{sharer.name}-{number}" if number else sharer.name,
            pod=pod,
            budget="pod" if sharer.containers > 1 else None,
            gang=sharer.gang,
            first=sharer.card,
        )
        container.install(built_library())
        pod = container.question.pod
        yield container


def start(place: Isolated, sharer: Sharer) -> Running:
    """Start it; returns once the broker knows all its processes."""
    running = Running(place, sharer)
    try:
        until(running.is_known, why=lambda: f"{sharer.name}: the broker does not know its programs")
    except BaseException:
        running.end()
        raise
    return running


@contextmanager
def sharing(place: Isolated, *sharers: Sharer) -> Generator[list[Running]]:
    with ExitStack() as stack:
        running: list[Running] = []
        for sharer in sharers:
            running.append(start(place, sharer))
            stack.callback(running[-1].end)
        yield running


def each_second(place: Isolated, running: Sequence[Running], step_s: float = 1.0) -> Iterator[tuple[float, ...]]:
    """Fractions of the card's time for each, measured every step, endlessly."""
    at, had = _had(place, running)
    while True:
        time.sleep(step_s)
        now, has = _had(place, running)
        yield tuple((after - before) / (now - at) for before, after in zip(had, has, strict=True))
        at, had = now, has


def _had(place: Isolated, running: Sequence[Running]) -> tuple[int, list[int]]:
    account = {each.pid: each.busy_ns for card in place.node.status().values() for each in card.processes}
    return time.monotonic_ns(), [each.busy_ns(account) for each in running]


def bar(parts: Sequence[float]) -> str:
    """One step's fractions as a line of text; a letter for each container."""
    widths = [round(part * WIDTH) for part in parts]
    drawn = "".join(letter * width for letter, width in zip("ABC", widths, strict=False))
    return drawn[:WIDTH].ljust(WIDTH, ".")


def watched(place: Isolated, running: Sequence[Running], seconds: int, step_s: float = 1.0) -> list[tuple[float, ...]]:
    return [parts for _, parts in zip(range(seconds), each_second(place, running, step_s), strict=False)]
