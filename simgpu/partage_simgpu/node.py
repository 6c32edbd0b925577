"""A simulated node: a driver root and the simgpud that brings it to life."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from partage_simgpu import simgpud
from partage_simgpu.control import control
from partage_simgpu.describing import Card, described
from partage_simgpu.driver_root import LIBRARIES, lay_out
from partage_simgpu.errors import NodeFailed
from partage_simgpu.statuses import CardStatus, statuses_of

_LIBRARY_NAMES: Final = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}


def make_node(root: Path, name: str, cards: Sequence[Card], *, build: Path) -> SimulatedNode:
    """Lays it out, all or nothing that works; it does not run yet."""
    sections = described(name, cards)
    root.mkdir(parents=True, exist_ok=True)
    lay_out(root, build, sections)
    return SimulatedNode(root)


class SimulatedNode:
    """One that this process started, or will."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._daemon: simgpud.Simgpud | None = None

    @property
    def pid(self) -> int:
        """Of its simgpud."""
        return self._running().pid

    @property
    def libraries(self) -> Path:
        """The folder that programs are given as LD_LIBRARY_PATH."""
        return self.root / LIBRARIES

    @property
    def environment(self) -> Mapping[str, str]:
        """Ours, with the simulated driver in front: for child processes."""
        before = os.environ.get("LD_LIBRARY_PATH")
        return {**os.environ, "LD_LIBRARY_PATH": f"{self.libraries}:{before}" if before else str(self.libraries)}

    def library(self, name: str) -> Path:
        """`cuda`, `nvml`, or a file's name."""
        return self.libraries / _LIBRARY_NAMES.get(name, name)

    def control(self, command: str) -> str:
        """Tells simgpud something; what follows its `ok`."""
        return control(self.root, command)

    def status(self) -> dict[int, CardStatus]:
        """How its cards fare, by their indices."""
        return statuses_of(self.control("status"))

    def start(self) -> None:
        """Returns once it serves."""
        if self._daemon is not None and self._daemon.runs:
            raise NodeFailed(f"{self.root} runs already, as process {self._daemon.pid}")
        self._let_go()
        self._daemon = simgpud.start(self.root)

    def stop(self) -> None:
        """Cleanly, if it runs."""
        if self._daemon is not None:
            self._daemon.stop()
            self._let_go()

    def kill(self) -> None:
        """As a crash: nothing is tidied up."""
        self._running().kill()
        self._let_go()

    def restart(self) -> None:
        """Ends simgpud if it runs, and starts another one on the same root."""
        self.stop()
        self.start()

    def send(self, number: signal.Signals) -> None:
        """A signal to simgpud, such as SIGSTOP."""
        self._running().send(number)

    def _running(self) -> simgpud.Simgpud:
        if self._daemon is None:
            raise NodeFailed(f"{self.root} does not run; start it first")
        return self._daemon

    def _let_go(self) -> None:
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None
