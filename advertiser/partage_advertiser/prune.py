"""Takes back everything that an advertiser wrote for its node, so that an uninstall leaves nothing.

Each thing by itself: one that can't be removed keeps no other. What is not there was removed before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from partage_advertiser.inventory import InventoryFile
from partage_advertiser.signs import PauseFile
from partage_base.kube import ApiServer, KubeError, Lease, Node, NotFound, lease_path, node_path
from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from partage_plugins.vocabulary.places import INVENTORY_FILE, PAUSE_FOLDER


class Pruned(NamedTuple):
    """What became of one thing."""

    what: str
    outcome: str
    """removed, would be removed, was not there, or not removed: why."""
    failed: bool = False


async def prune(server: ApiServer, *, root: Path, namespace: str, node: str, dry_run: bool) -> AsyncIterator[Pruned]:
    """Tells what became of each, as it happens."""
    yield await _annotation(server, node, dry_run=dry_run)
    yield await _lease(server, namespace, node, dry_run=dry_run)
    yield _files(root, dry_run=dry_run)


async def _annotation(server: ApiServer, node: str, *, dry_run: bool) -> Pruned:
    what = f"annotation {ANNOTATION} of node {node}"
    try:
        if ANNOTATION not in (await server.get(node_path(node), Node)).metadata.annotations:
            return Pruned(what, "was not there")
        if not dry_run:
            await server.patch(node_path(node), {"metadata": {"annotations": {ANNOTATION: None}}}, msgspec.Raw)
    except NotFound:
        return Pruned(what, "was not there")
    except KubeError as error:
        return Pruned(what, f"not removed: {error}", failed=True)
    return Pruned(what, "would be removed" if dry_run else "removed")


async def _lease(server: ApiServer, namespace: str, node: str, *, dry_run: bool) -> Pruned:
    what = f"Lease {namespace}/{node}"
    try:
        await server.get(lease_path(namespace, node), Lease)
        if not dry_run:
            await server.delete(lease_path(namespace, node))
    except NotFound:
        return Pruned(what, "was not there")
    except KubeError as error:
        return Pruned(what, f"not removed: {error}", failed=True)
    return Pruned(what, "would be removed" if dry_run else "removed")


def _files(root: Path, *, dry_run: bool) -> Pruned:
    what = f"{root / INVENTORY_FILE} and our file in {root / PAUSE_FOLDER}"
    try:
        if dry_run:
            return Pruned(what, "would be removed")
        gone = [InventoryFile(root).remove(), PauseFile(root).say(None)]
    except OSError as error:
        return Pruned(what, f"not removed: {error}", failed=True)
    return Pruned(what, "removed" if any(gone) else "were not there")
