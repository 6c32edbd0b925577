"""A daemon's access to the API server, and its setting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.settings import Setting
from partage_base.kube import Access, ApiServer, BadAccess
from partage_base.version import VERSION

Kubeconfig = Annotated[
    Path | None,
    Setting("File that says how to reach the API server; without it KUBECONFIG, then the pod's service account."),
]


async def server_for(daemon: str, kubeconfig: Path | None, *, connections: int = 4) -> ApiServer:
    """The API server that `kubeconfig` leads to, which need not be up; raises `BadConfiguration` without access."""
    try:
        access = await asyncio.to_thread(Access.find, kubeconfig)
    except BadAccess as error:
        raise BadConfiguration(str(error)) from None
    return ApiServer(access, user_agent=f"partage-{daemon}/{VERSION}", connections=connections)
