"""The machine that is changed: where its files lie, and who keeps its services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from partage_cli.installation.services import ServiceManager

Say = Callable[[str], None]


@dataclass(frozen=True)
class Host:
    root: Path
    services: ServiceManager
    say: Say
    """Takes lines for people."""
    node_name: str = ""
    """As kubelet registered it, where its command line does not say so; empty: by that, or the host's name."""

    def path(self, inside: str | Path) -> Path:
        """A file of the machine."""
        return self.root / str(inside).lstrip("/")
