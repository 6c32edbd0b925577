"""Simulated nodes, each a driver root and the simgpud that serves it.

A node outlives the command that created it. Whether it runs is determined by asking its simgpud, never from a file.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from partage_simgpu import simgpud
from partage_simgpu.build import built
from partage_simgpu.control import control
from partage_simgpu.description import Card, Section, described, sections_of
from partage_simgpu.driver_root import CONF, LIBRARIES, lay_out
from partage_simgpu.errors import NodeFailed
from partage_simgpu.status import CardStatus, statuses_of

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LIBRARY_NAMES: Final = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}


def make_node(root: Path, name: str, cards: Sequence[Card], *, build: Path) -> SimulatedNode:
    """Lays out a node without starting it. A failure leaves no usable node."""
    sections = described(name, cards)
    root.mkdir(parents=True, exist_ok=True)
    lay_out(root, build, sections)
    return SimulatedNode(root)


class SimulatedNode:
    """A node that this process has started or will start."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._daemon: simgpud.Simgpud | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def libraries(self) -> Path:
        """The folder to use as LD_LIBRARY_PATH."""
        return self.root / LIBRARIES

    @property
    def environment(self) -> Mapping[str, str]:
        """This process's environment with the simulated driver first in LD_LIBRARY_PATH, for child processes."""
        before = os.environ.get("LD_LIBRARY_PATH")
        return {**os.environ, "LD_LIBRARY_PATH": f"{self.libraries}:{before}" if before else str(self.libraries)}

    def library(self, name: str) -> Path:
        """Returns the path of a library: `cuda`, `nvml`, or a file name."""
        return self.libraries / _LIBRARY_NAMES.get(name, name)

    def control(self, command: str) -> str:
        """Sends simgpud a command and returns the text after `ok`."""
        return control(self.root, command)

    def status(self) -> dict[int, CardStatus]:
        """Returns the state of its cards by index."""
        return statuses_of(self.control("status"))

    def start(self) -> None:
        if self._daemon is not None and self._daemon.runs:
            raise NodeFailed(f"{self.root} runs already, as process {self._daemon.pid}")
        self._let_go()
        self._daemon = simgpud.start(self.root)

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
            self._let_go()

    def kill(self) -> None:
        """Kills simgpud without cleanup, as a crash does."""
        self._running().kill()
        self._let_go()

    def restart(self) -> None:
        """Stops simgpud if it runs, and starts another one on the same root."""
        self.stop()
        self.start()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to simgpud, such as SIGSTOP."""
        self._running().send(number)

    def _running(self) -> simgpud.Simgpud:
        if self._daemon is None:
            raise NodeFailed(f"{self.root} does not run; start it first")
        return self._daemon

    def _let_go(self) -> None:
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None


def is_node_name(name: str) -> bool:
    """Whether this is a valid node name; it becomes a folder's name."""
    return _NAME.fullmatch(name) is not None


class Nodes:
    """The simulated nodes in one folder, each in a subfolder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        return sorted(
            path.name for path in self.folder.iterdir() if is_node_name(path.name) and (path / CONF).is_file()
        )

    def node(self, name: str) -> SimulatedNode:
        """Returns an existing node, running or not."""
        root = self.folder / name
        if not is_node_name(name) or not (root / CONF).is_file():
            known = ", ".join(self.names()) or "there is none"
            raise NodeFailed(f"there is no node {name} in {self.folder}; known: {known}")
        return SimulatedNode(root)

    def make(self, name: str, cards: Sequence[Card]) -> tuple[SimulatedNode, int]:
        """Creates a node and starts it in the background; returns it and simgpud's pid. Leaves nothing on failure."""
        root, build = self.folder / name, built()
        self.folder.mkdir(parents=True, exist_ok=True)
        if root.exists():
            raise NodeFailed(f"there is a node {name} already; remove it, or take another name")
        fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self.folder))
        try:
            make_node(fresh, name, cards, build=build)
            fresh.rename(root)  # so that a folder with a node's name is always complete
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        try:
            return SimulatedNode(root), self.start(name)
        except BaseException:
            shutil.rmtree(root, ignore_errors=True)
            raise

    def start(self, name: str) -> int:
        """Starts an existing node in the background and returns its simgpud's pid."""
        root = self.node(name).root
        with simgpud.start(root) as daemon:
            return daemon.pid

    def remove(self, name: str) -> None:
        """Stops a node and deletes it."""
        root = self.node(name).root
        daemon = simgpud.running(root)
        if daemon is not None:
            with daemon:
                daemon.stop()
        if simgpud.is_served(root):
            raise NodeFailed(f"a simgpud holds {root} but does not answer; end it by hand, then remove the node")
        shutil.rmtree(root)


class CardReport(msgspec.Struct, frozen=True):
    """A card or MIG instance of a node."""

    index: int
    name: str
    uuid: str
    is_instance: bool
    status: CardStatus | None
    """None: no simgpud responds."""


class NodeReport(msgspec.Struct, frozen=True):
    """A node, running or not."""

    name: str
    root: str
    pid: int | None
    """The pid of its simgpud; None: not running."""
    cards: tuple[CardReport, ...]


def report(node: SimulatedNode) -> NodeReport:
    sections = sections_of((node.root / CONF).read_text())
    found = simgpud.running(node.root)
    statuses: dict[int, CardStatus] = {}
    if found is not None:
        found.close()
        try:
            statuses = node.status()
        except NodeFailed:  # it has just ended, or does not respond
            found = None
    cards = tuple(_card(index, section, statuses.get(index)) for index, section in enumerate(sections))
    return NodeReport(node.root.name, str(node.root), None if found is None else found.pid, cards)


def _card(index: int, section: Section, status: CardStatus | None) -> CardReport:
    fields = section.fields
    return CardReport(index, str(fields["name"]), str(fields["uuid"]), section.kind == "mig", status)
