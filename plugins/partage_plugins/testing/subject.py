"""The subject of the checks: a plugin, and examples of its input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from partage_plugins.api.pods import Pod

Has = Literal["scheduler", "node", "kind", "grants"]


class Limits(Struct, frozen=True, kw_only=True):
    """Resource limits for the plugin."""

    call_s: float = 5.0
    """Seconds for one call."""
    memory_bytes: int = 1 << 30
    """Memory limit of the process that runs the plugin."""


class Subject(Struct, frozen=True, kw_only=True):
    """A plugin and its examples; plain data, so that it can be passed to a child process."""

    name: str
    """Its name in the entry points."""
    kind: str | None = None
    """The kind that it owns; None for one that only adds requests, vetoes or preferences."""
    scheduler: str | None = None
    """The scheduler side's class, `module:Class`."""
    node: str | None = None
    """The node side's class, `module:Class`."""
    pods: tuple[Pod, ...] = ()
    """Pods that request its kind and fit on at least one of the inventories. A few thousand must fill all
    inventories."""
    inventories: tuple[str, ...] = ()
    """Complete inventories as a node writes them; `examples.inventory` creates them."""
    grants: Mapping[str, str] = {}
    """For a plugin without a scheduler side: a container's grants by kind, as JSON, of devices in the first
    inventory."""
    files: Mapping[str, str] = {}
    """Content of a node's files by path below its root; created before `partage_started`."""
    beside_scheduler: Mapping[str, str] = {}
    """Other plugins that its scheduler side needs, `module:Class` by name."""
    beside_node: Mapping[str, str] = {}
    """Other plugins that its node side needs, such as one that enforces its grants' promises."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.scheduler is None and self.node is None:
            raise ValueError("a subject needs a scheduler side or a node side, as 'module:Class'")
        if self.scheduler is not None and not (self.pods and self.inventories):
            raise ValueError("a subject with a scheduler side needs pods, and inventories on which they fit")
        if self.grants and not self.inventories:
            raise ValueError("a subject with grants needs the inventory that they are of")
        for name in self.files:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"file {name!r} of a subject must be a path below the node's root")

    @property
    def has(self) -> frozenset[Has]:
        """Decides which checks apply; `grants`: there are grants for which containers can be adjusted."""
        is_there: dict[Has, bool] = {
            "scheduler": self.scheduler is not None,
            "node": self.node is not None,
            "kind": self.kind is not None,
            "grants": bool(self.grants) or (self.scheduler is not None and self.kind is not None),
        }
        return frozenset(name for name, there in is_there.items() if there)
