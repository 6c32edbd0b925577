"""Gathers inventories and heartbeats: from the API server, or from this node's own file."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from partage_base.kube import ApiServer, Lease, Listing, Node, leases_path, node_path, nodes_path
from partage_cli.nodes.reports import Report, of_cluster, of_node
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES
from partage_plugins.vocabulary.places import INVENTORY_FILE

_AT_A_TIME: Final = 500


async def cluster(server: ApiServer, *, namespace: str, node: str | None) -> Report:
    """Of all nodes, or of one; raises `KubeError`."""
    nodes, leases = await asyncio.gather(
        _nodes(server, node), server.list(leases_path(namespace), Lease, limit=_AT_A_TIME)
    )
    unread = {each.key[1]: each.why for each in nodes.unread}
    return of_cluster(nodes.items, leases.items, datetime.now(UTC), unread=unread)


def local(root: Path, name: str) -> Report:
    """Of this node alone, without an API server; raises `OSError`."""
    with (root / INVENTORY_FILE).open("rb") as file:
        text = file.read(MAX_ANNOTATION_BYTES + 1)
    try:
        return Report(nodes=(of_node(name, text, None),))
    except DecodeError as error:
        return Report(faults={name: str(error)})


async def _nodes(server: ApiServer, name: str | None) -> Listing[Node]:
    if name is not None:
        return Listing((await server.get(node_path(name), Node),), "")
    return await server.list(nodes_path(), Node, limit=_AT_A_TIME)
