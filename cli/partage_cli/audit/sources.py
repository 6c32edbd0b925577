"""Gathers the state of the API server, and of this node if partage runs on it."""

from __future__ import annotations

import asyncio
import http.client
import os
import time
import urllib.request
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from partage_base.claim_records import ClaimRecords
from partage_base.cri import CriError, ListedContainer, RuntimeClient, UnaryClient
from partage_base.kube import (
    NOT_ENDED,
    ApiServer,
    NotAllowed,
    NotFound,
    Undecodable,
    leases_path,
    nodes_path,
    pods_path,
    resource_claims_path,
)
from partage_cli.audit.observation import SeenClaims, SeenCluster, SeenHere, seen_node, seen_pods
from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.schedulers import trusted_keys
from partage_dra.claims import Claim
from partage_dra.spec_file import SpecFiles
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import BrokerReport
from partage_plugins.api import AnyKind
from partage_plugins.api.claims import ClaimRecord, ClaimUid
from partage_plugins.api.places import BROKER_SOCKET, CLAIMS_FOLDER, INVENTORY_FILE
from partage_plugins.errors import DecodeError, Refused
from partage_scheduler.objects import ApiLease, ApiNode, ApiPod

_PAGE: Final = 1000
_DEADLINE_S: Final = 10.0
_MOST_BYTES: Final = 4 << 20


async def cluster(server: ApiServer, *, namespace: str, kinds: tuple[AnyKind, ...], root: Path) -> SeenCluster:
    """Read everything; raises `KubeError`. Pods come last, so that the nodes that they were bound to are known."""
    keys = await trusted_keys(server, namespace, root)
    nodes = await server.list(nodes_path(), ApiNode, limit=_PAGE)
    leases = await server.list(leases_path(namespace), ApiLease, limit=_PAGE)
    pods = await server.list(pods_path(), ApiPod, fields=NOT_ENDED, limit=_PAGE)
    now = time.time()
    ages = {lease.name: _age(lease, now) for lease in leases.items}
    return SeenCluster(
        pods=tuple(seen_pods(pods.items, kinds, keys)),
        nodes={node.name: seen_node(node, kinds, ages.get(node.name)) for node in nodes.items},
        keys=keys,
        claims=await _allocated(server),
        unread=(
            *_unread("node", nodes.undecodable),
            *_unread("lease", leases.undecodable),
            *_unread("pod", pods.undecodable),
        ),
    )


async def _allocated(server: ApiServer) -> frozenset[ClaimUid] | None:
    """Allocated claims; None if listing is denied, as to a node's identity, or absent, as in older clusters."""
    try:
        found = await server.list(resource_claims_path(), Claim, limit=_PAGE)
    except (NotAllowed, NotFound):
        return None
    return frozenset(ClaimUid(each.metadata.uid) for each in found.items if each.status.allocation is not None)


def here(root: Path, name: str, runtime: Path) -> SeenHere:
    """Read this node; a source that can't be queried becomes an `Unseen` with the reason."""
    return SeenHere(
        name=name,
        inventory=text_of(root / INVENTORY_FILE),
        containers=_containers(runtime),
        broker=_broker(root),
        claims=_claims(root),
    )


def page_of(url: str) -> str | Unseen:
    """Fetch a metrics page."""
    if not url.startswith(("http://", "https://")):
        return Unseen(Path(url), "is no address of http")
    try:
        with urllib.request.urlopen(url, timeout=_DEADLINE_S) as answer:  # noqa: S310  (checked above)
            whole: bytes = answer.read(_MOST_BYTES)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Unseen(Path(url), str(error))
    return whole.decode(errors="replace")


def is_node(root: Path) -> bool:
    return (root / INVENTORY_FILE).exists()


def _containers(socket: Path) -> tuple[ListedContainer, ...] | Unseen:
    if not os.access(socket, os.W_OK):
        return Unseen(socket, "is not there, or may not be asked as this user")
    return asyncio.run(_listed(socket))


async def _listed(socket: Path) -> tuple[ListedContainer, ...] | Unseen:
    client = UnaryClient(socket)
    try:
        return await RuntimeClient(client, deadline_s=10.0).containers()
    except CriError as error:
        return Unseen(socket, str(error))
    finally:
        client.close()


def _claims(root: Path) -> SeenClaims | Unseen:
    folder = root / CLAIMS_FOLDER
    records, read, unread = ClaimRecords(root), list[ClaimRecord](), list[str]()
    try:
        for uid in records.uids():
            try:
                record = records.of(uid)
            except DecodeError as error:
                unread.append(f"the record of claim {uid}: {error}")
            else:
                read += () if record is None else (record,)
        return SeenClaims(records=tuple(read), unread=tuple(unread), files=SpecFiles(root).claims())
    except PermissionError as error:
        return Unseen(folder, error.strerror or str(error))


def _broker(root: Path) -> BrokerReport | Unseen:
    try:
        return BrokerClient(root).tell()
    except (ControlError, Refused) as error:
        return Unseen(root / BROKER_SOCKET, str(error))


def _unread(kind: str, passed_over: Iterable[Undecodable]) -> Iterator[str]:
    for each in passed_over:
        where = f" on node {each.node}" if each.node else ""
        yield f"{kind} {'/'.join(filter(None, each.key))}{where}: {each.why}"


def _age(lease: ApiLease, now: float) -> float | None:
    text = lease.spec.renew_time
    try:
        return None if not text else now - datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
