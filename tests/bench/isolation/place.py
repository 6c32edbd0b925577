"""A node with simulated cards, a broker, and containers as a program sees them, without a container runtime.

    with a_place(cards=("h100",)) as place:
        half = place.container(memory_mib=2048)
        subprocess.run([...], env=half.environment)

A program is in a container by its environment: LD_PRELOAD loads the library from the folder that would be mounted
there. Attacks by changed variables are tested elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.isolation.race import Course, Race
from partage_isolation.library.objects import built
from partage_simgpu.build import built as workloads
from rig.client.wait import found
from support.isolated import Contained, Isolated, isolated
from support.simgpu import Card

MIB: Final = 1 << 20
FOR_LONG_S: Final = "100000"
_POLL_S: Final = 0.002
_SELDOM_S: Final = 0.02


class Place:
    def __init__(self, isolation: Isolated) -> None:
        self.isolation, self.node = isolation, isolation.node

    @property
    def broker_pid(self) -> int:
        return self.isolation.broker.pid

    @property
    def log(self) -> str:
        return self.isolation.broker.log.read_text()

    @property
    def findings(self) -> Sequence[str]:
        return self.isolation.told().findings

    def container(
        self, *, memory_mib: int, share: int = 100, limit: int = 1000, objects: Path | None = None
    ) -> Contained:
        """Adds a container with a part of the first card; its programs load the library from `objects`, if given."""
        made = self.isolation.prepare(memory_mib * MIB, share=share, limit=limit)
        made.install(objects or built())
        return made

    def budget(self, *, memory_mib: int, containers: int) -> list[Contained]:
        """Adds this many containers of one pod with a common budget."""
        first = self.isolation.prepare(memory_mib * MIB, budget="pod")
        more = [
            self.isolation.prepare(memory_mib * MIB, budget="pod", pod=first.question.pod, name=f"more-{number}")
            for number in range(1, containers)
        ]
        for made in (first, *more):
            made.install(built())
        return [first, *more]

    def charged(self, pid: int) -> int:
        """Memory lent to a process and reserved for its contexts, in any container."""
        processes = (each for told in self.isolation.told().containers for each in told.processes if each.pid == pid)
        return sum(card.lent_bytes + card.overhead_bytes for each in processes for card in each.cards)

    def settled(self, container: Contained) -> Callable[[int], None]:
        """Returns a function that waits until the broker knows that a process is dead, by checking the card."""

        def is_dead(pid: int) -> bool:
            time.sleep(_SELDOM_S)  # each look costs the broker work
            processes = (each for each in container.told().processes if each.pid == pid)
            return all(card.state == "dead" for each in processes for card in each.cards)

        def wait(pid: int) -> None:
            self.until(f"process {pid} is known to be dead", lambda: is_dead(pid))

        return wait

    def warm_up(self, container: Contained, context_mib: int, folder: Path) -> None:
        """Let the broker learn the size of a context: it measures one in a process that does nothing else."""
        course = Course(container.environment, container.limit, context_mib, processes=1)
        with Race(course, folder / "warm-up") as race:
            self.until("a context is measured", lambda: container.told().cards[0].overhead_bytes == context_mib * MIB)
            race.finish()
        self.until("the first process is forgotten", lambda: not container.told().processes)
        self.node.control("peaks reset")

    def until(self, what: str, holds: Callable[[], object]) -> float:
        """Waits for a condition; returns the seconds it took."""
        began = time.monotonic()
        found(what, holds, every_s=_POLL_S, logs=[self.isolation.broker.said])
        return time.monotonic() - began


@contextmanager
def a_place(*, cards: Sequence[str | Card] = ("h100",), settings: Mapping[str, str] | None = None) -> Generator[Place]:
    """A place with a running broker; everything is removed afterwards."""
    with isolated(cards=cards, library=built(), settings=settings) as isolation:
        yield Place(isolation)


@contextmanager
def flooded(place: Place, container: Contained) -> Generator[None]:
    """Runs a program of another container that always uses the card."""
    argv = [str(workloads() / "flood"), "--seconds", FOR_LONG_S]
    process = subprocess.Popen(argv, env={**os.environ, **container.environment}, stdout=subprocess.DEVNULL)
    try:
        place.until("the flood has a process on the card", lambda: container.told().processes)
        yield
    finally:
        process.kill()
        process.wait()
