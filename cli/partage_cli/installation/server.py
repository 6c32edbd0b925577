"""The API server, asked with credentials that are on the host, such as kubelet's own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from partage_base.kube import Access, ApiServer
from partage_base.version import VERSION
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.host import Host

_DEADLINE_S: Final = 5.0


@asynccontextmanager
async def api_of(host: Host, kubeconfig: str) -> AsyncGenerator[ApiServer]:
    """As that file says, which is one of the host; raises `UnfitNode` and `KubeError`."""
    if not kubeconfig:
        raise UnfitNode("kubelet's command line names no --kubeconfig, so it can't be asked whether the node is ready")
    access = Access.find(host.path(kubeconfig))
    async with ApiServer(access, user_agent=f"partage/{VERSION}", deadline_s=_DEADLINE_S) as server:
        yield server
