"""Programs that allocate and free memory continuously while their broker is killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self

from rig.patience import patience_s
from support.isolated import Contained, Isolated, isolated, until
from support.procfs import descriptors
from support.simgpu import card

MIB: Final = 1 << 20
_LOAD: Final = Path(__file__).with_name("load_process.py")


def broker_killed_under_load(kills: int) -> None:
    """Assert that no limit is exceeded, no program stops, and finally nothing is charged."""
    limit = 1024 * MIB
    chance = random.Random(8)  # noqa: S311  chooses moments
    with isolated(cards=(card("t4", memory_mib=8192, reserved_mib=100, context_mib=64),)) as place:
        container = place.prepare(limit)
        with load(container, 3, most=300 * MIB) as running, Watcher(place, limit) as watcher:
            place.node.control("peaks reset")
            for _ in range(kills):
                time.sleep(chance.random() * 0.3)
                place.broker.kill()
                place.broker.start()
                until(lambda: _is_right(container))
            assert watcher.looks > kills
            done = [ended(process) for process in running]
        assert watcher.worst <= limit, f"{watcher.worst - limit} bytes beyond"
        for taken, given, _, again in done:
            assert taken >= kills / 2  # otherwise there was no load
            assert given >= kills / 4
            assert again >= kills / 2
        until(lambda: not container.told().processes)
        assert container.told().cards[0].charged_bytes == 0
        assert descriptors(place.broker.pid) < 60


def _is_right(container: Contained) -> bool:
    """All processes are back and have reported their memory."""
    told = container.told().processes
    return len(told) == 3 and all(process.connected for process in told)


@contextmanager
def load(container: Contained, count: int, *, most: int) -> Generator[list[subprocess.Popen[str]]]:
    """Processes that allocate and free memory continuously."""
    environment = {**container.place.node.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with ExitStack() as stack:
        running: list[subprocess.Popen[str]] = []
        for seed in range(count):
            argv = [sys.executable, "-P", str(_LOAD), str(container.socket), str(seed), str(most)]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            stack.enter_context(process)
            stack.callback(process.kill)
            running.append(process)
        for process in running:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        yield running


def ended(process: subprocess.Popen[str]) -> list[int]:
    out, _ = process.communicate(timeout=patience_s())
    assert process.returncode == 0, process.returncode
    return [int(word) for word in out.split()]


class Watcher:
    """Watches the card continuously and records processes beyond their limit."""

    def __init__(self, place: Isolated, limit: int) -> None:
        self._place, self._limit = place, limit
        self._stop = threading.Event()
        self.looks = 0
        self.worst = 0
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.is_set():
            self.looks += 1
            self.worst = max(self.worst, self._place.node.status()[0].peak_bytes)
            time.sleep(0.02)
