"""Access to the cluster for commands: the options, one question with its answer, and the caller's identity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import click
import msgspec

from partage_base.kube import Access, ApiServer
from partage_base.version import VERSION
from partage_cli.progress import waiting

A = TypeVar("A")

KUBECONFIG: Final = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="How to reach the API server.  [default: $KUBECONFIG, the pod's service account, ~/.kube/config]",
)
POD: Final = click.argument("pod", metavar="[NAMESPACE/]POD")
POD_NAMESPACE: Final = click.option(
    "-n", "--pod-namespace", default="default", show_default=True, help="Of the pod, where POD names none."
)
NAMESPACE: Final = click.option(
    "--namespace",
    default="partage-system",
    show_default=True,
    envvar="PARTAGE_NAMESPACE",
    help="Where partage keeps the nodes' heartbeats.",
)

NO_NODE: Final = "no node tells of cards; label nodes that have some: kubectl label node NODE partage.dev/install=yes"


def ask_cluster(
    kubeconfig: Path | None,
    question: Callable[[ApiServer], Awaitable[A]],
    *,
    deadline_s: float = 10.0,
    connections: int = 4,
) -> A:
    """Ask the API server `question` and return the answer; raises `KubeError`. Blocks, and runs its own event loop."""
    access = Access.find(kubeconfig)  # it may start programs (credential plugins), so before the loop exists

    async def asked() -> A:
        agent = f"partage/{VERSION}"
        async with ApiServer(access, user_agent=agent, deadline_s=deadline_s, connections=connections) as server:
            return await question(server)

    with waiting("asking the API server"):
        return asyncio.run(asked())


class Identity(NamedTuple):
    """The user name that the API server authenticated, and the server's time."""

    user: str
    at: str


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _ReviewStatus(msgspec.Struct, frozen=True):
    user: _User = msgspec.field(name="userInfo", default=_User())


class _ReviewMeta(msgspec.Struct, frozen=True):
    at: str = msgspec.field(name="creationTimestamp", default="")


class _Review(msgspec.Struct, frozen=True):
    metadata: _ReviewMeta = _ReviewMeta()
    status: _ReviewStatus = _ReviewStatus()


async def identity(server: ApiServer) -> Identity:
    """The caller's identity by a SelfSubjectReview; raises `KubeError`."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = await server.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", body, _Review)
    return Identity(found.status.user.username, found.metadata.at)
