"""This Node in the API server, read with kubelet's own credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from partage_base.kube import ApiServer
from partage_base.kube.errors import KubeError
from partage_base.kube.paths import node_path
from partage_cli.installation.host import Host, api_of
from partage_cli.installation.refusals import NodeInfo

EVER: Final = datetime.min.replace(tzinfo=UTC)


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str = ""
    message: str = ""
    last_heartbeat_time: datetime = EVER


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: Sequence[_Condition] = ()
    allocatable: Mapping[str, str] = {}
    node_info: NodeInfo = NodeInfo()


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


async def own_node(host: Host, kubeconfig: str, name: str) -> OwnNode:
    """Raises `UnfitNode` and `KubeError`."""
    async with api_of(host, kubeconfig) as server:
        return await server.get(node_path(name), OwnNode)


async def why_not_ready(server: ApiServer, node: str, since: datetime) -> str | None:
    try:
        found = await server.get(node_path(node), OwnNode)
    except KubeError as error:
        return str(error)
    return found.why_not_ready(since)
