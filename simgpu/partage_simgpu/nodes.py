"""The simulated nodes of a user: a folder for each, by name, and its simgpud in the background.

A node outlives the command that made it. Whether it runs is what its simgpud answers, never what a file says.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from partage_simgpu import simgpud
from partage_simgpu.building import built
from partage_simgpu.describing import Card
from partage_simgpu.driver_root import CONF
from partage_simgpu.errors import NodeFailed
from partage_simgpu.node import SimulatedNode, make_node

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def is_node_name(name: str) -> bool:
    """Whether a node may be called so; it becomes a folder's name."""
    return _NAME.fullmatch(name) is not None


class Nodes:
    """Those in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def names(self) -> list[str]:
        """In order."""
        if not self.folder.is_dir():
            return []
        return sorted(
            path.name for path in self.folder.iterdir() if is_node_name(path.name) and (path / CONF).is_file()
        )

    def node(self, name: str) -> SimulatedNode:
        """One that is there, running or not."""
        root = self.folder / name
        if not is_node_name(name) or not (root / CONF).is_file():
            known = ", ".join(self.names()) or "there is none"
            raise NodeFailed(f"there is no node {name} in {self.folder}; known: {known}")
        return SimulatedNode(root)

    def make(self, name: str, cards: Sequence[Card]) -> tuple[SimulatedNode, int]:
        """Lays one out and starts it in the background; its simgpud's process id. Leaves nothing if it fails."""
        root, build = self.folder / name, built()
        self.folder.mkdir(parents=True, exist_ok=True)
        if root.exists():
            raise NodeFailed(f"there is a node {name} already; remove it, or take another name")
        fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self.folder))
        try:
            make_node(fresh, name, cards, build=build)
            fresh.rename(root)  # so that what has a node's name is a whole node
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        try:
            return SimulatedNode(root), self.start(name)
        except BaseException:
            shutil.rmtree(root, ignore_errors=True)
            raise

    def start(self, name: str) -> int:
        """Starts one again in the background; its simgpud's process id."""
        root = self.node(name).root
        with simgpud.start(root) as daemon:
            return daemon.pid

    def remove(self, name: str) -> None:
        """Ends it and deletes it."""
        root = self.node(name).root
        daemon = simgpud.running(root)
        if daemon is not None:
            with daemon:
                daemon.stop()
        if simgpud.is_served(root):
            raise NodeFailed(f"a simgpud holds {root} but does not answer; end it by hand, then remove the node")
        shutil.rmtree(root)
