"""How commands reach the cluster: the options, and one question asked and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from partage_base.kube import Access, ApiServer
from partage_base.version import VERSION

A = TypeVar("A")

KUBECONFIG: Final = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="How to reach the API server.  [default: $KUBECONFIG, the pod's service account, ~/.kube/config]",
)
NAMESPACE: Final = click.option(
    "--namespace",
    default="partage-system",
    show_default=True,
    envvar="PARTAGE_NAMESPACE",
    help="Where partage keeps the nodes' heartbeats.",
)


def ask_cluster(
    kubeconfig: Path | None,
    question: Callable[[ApiServer], Awaitable[A]],
    *,
    deadline_s: float = 10.0,
    connections: int = 4,
) -> A:
    """The answer; raises `KubeError`. Blocks, and runs a loop of its own."""
    access = Access.find(kubeconfig)  # it may start programs, so before there is a loop

    async def asked() -> A:
        agent = f"partage/{VERSION}"
        async with ApiServer(access, user_agent=agent, deadline_s=deadline_s, connections=connections) as server:
            return await question(server)

    return asyncio.run(asked())
