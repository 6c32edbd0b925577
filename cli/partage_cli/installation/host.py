"""The machine that is changed: its files, its services, and the API server with its credentials."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.kube import Access, ApiServer
from partage_base.version import VERSION
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.services import Systemctl

Say = Callable[[str], None]
_DEADLINE_S: Final = 5.0


@dataclass(frozen=True)
class Host:
    root: Path
    services: Systemctl
    say: Say
    """Prints lines for people."""
    node_name: str = ""
    """Node name, if it is not on kubelet's command line; empty: use that, or the host's name."""

    def path(self, inside: str | Path) -> Path:
        return self.root / str(inside).lstrip("/")


@asynccontextmanager
async def api_of(host: Host, kubeconfig: str) -> AsyncGenerator[ApiServer]:
    """The API server with a kubeconfig of the host, such as kubelet's own; raises `UnfitNode` and `KubeError`."""
    if not kubeconfig:
        raise UnfitNode("kubelet's command line names no --kubeconfig, so it can't be asked whether the node is ready")
    access = Access.find(host.path(kubeconfig))
    async with ApiServer(access, user_agent=f"partage/{VERSION}", deadline_s=_DEADLINE_S) as server:
        yield server
