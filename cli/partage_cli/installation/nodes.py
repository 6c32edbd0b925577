"""This Node in the API server, read with kubelet's own credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from partage_base.cri import CriError, RuntimeClient, UnaryClient
from partage_base.kube import ApiServer
from partage_base.kube.errors import KubeError
from partage_base.kube.paths import node_path
from partage_cli.installation.canary import ASKED_S, pause_image
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.host import Host, api_of
from partage_cli.installation.inspection import Site

_EPOCH: Final = datetime.min.replace(tzinfo=UTC)


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str = ""
    message: str = ""
    last_heartbeat_time: datetime = _EPOCH


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: Sequence[_Condition] = ()
    allocatable: Mapping[str, str] = {}


class OwnNode(msgspec.Struct, frozen=True):
    status: _NodeStatus = _NodeStatus()

    def why_not_ready(self, since: datetime) -> str | None:
        """None: kubelet has reported since then that it is ready."""
        ready = next((each for each in self.status.conditions if each.type == "Ready"), None)
        if ready is None or ready.last_heartbeat_time < since:
            return "kubelet has not told the API server how the node is since it was restarted"
        return None if ready.status == "True" else f"the node is not ready: {ready.message or ready.status}"

    @property
    def most_pods(self) -> int:
        said = self.status.allocatable.get("pods", "")
        return int(said) if said.isdecimal() else 0


async def why_not_ready(server: ApiServer, node: str, since: datetime) -> str | None:
    try:
        found = await server.get(node_path(node), OwnNode)
    except KubeError as error:
        return str(error)
    return found.why_not_ready(since)


async def require_room(host: Host, site: Site) -> None:
    """Raises `UnfitNode` unless the node is ready, has an image for the canary, and has room for one more pod.

    Without room kubelet would end another pod for ours.
    """
    try:
        async with api_of(host, site.kubeconfig) as server:
            node = await server.get(node_path(site.node), OwnNode)
    except KubeError as error:
        raise UnfitNode(f"kubelet's own credentials do not reach the API server: {error}") from None
    if why := node.why_not_ready(_EPOCH):
        raise UnfitNode(f"{why}; mend that first")
    client = UnaryClient(host.path(site.runtime))
    try:
        await pause_image(client)
        sandboxes = await RuntimeClient(client, deadline_s=ASKED_S).sandboxes()
    except CriError as error:
        raise UnfitNode(f"the container runtime does not answer: {error}") from None
    finally:
        client.close()
    pods = sum(each.is_ready for each in sandboxes)
    if pods >= node.most_pods:
        raise UnfitNode(
            f"the node has {pods} of {node.most_pods} pods, and one more is needed to try it; move one away"
        )
