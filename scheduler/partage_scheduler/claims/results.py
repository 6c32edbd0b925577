"""Allocations of claims: how they are written, and how existing ones count. Pure.

A device is named as the driver's ResourceSlices would name it, in the pool of its node. An existing allocation counts
by its content, whoever wrote it; a result without the amount that it has of its card counts as all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from partage_plugins.api import Allocation, CardId, ContainerName, GpuGrant, GpuPart, NodeName, PodUid
from partage_plugins.api.claim_devices import MEMORY, SHARE, device_name
from partage_plugins.api.claims import DRIVER
from partage_plugins.api.gpu import GPU, Card
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs.quantity import format_bytes, parse_quantity
from partage_plugins.errors import DecodeError
from partage_scheduler.objects import ApiResourceClaim
from partage_scheduler.objects.claims import DeviceResult

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim from being deleted while it is allocated."""
MOST_CONSUMERS: Final = 256
"""Limit of pods that one claim can be reserved for, as in the API server."""
_HELD: Final = ContainerName("claim")


class ClaimGrant(Struct, frozen=True, kw_only=True):
    """What a pod's claim is given on a node; the claim may have been allocated before."""

    namespace: str
    name: str
    uid: str
    node: NodeName
    given: tuple[tuple[str, GpuGrant], ...] = ()
    """By request; empty if the claim is already allocated or assumed."""
    config: tuple[Mapping[str, Any], ...] = ()


def holder_of(claim_uid: str, node: NodeName) -> PodUid:
    """The uid under which a claim's devices are counted among a node's pods."""
    return PodUid(f"claim/{claim_uid}/{node}")


def allocation_of(grant: ClaimGrant, new_id: Callable[[], str]) -> Mapping[str, Any]:
    """The allocation as it is written; `new_id` makes an id for each share."""
    field = {"key": "metadata.name", "operator": "In", "values": [grant.node]}
    config = [{name: value for name, value in each.items() if value} for each in grant.config]
    return {
        "devices": {"results": [_result(grant.node, *each, new_id()) for each in grant.given], "config": config},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


def _result(node: NodeName, request: str, grant: GpuGrant, share_id: str) -> Mapping[str, Any]:
    return {
        "request": request,
        "driver": DRIVER,
        "pool": node,
        "device": device_name(grant.card),
        "shareID": share_id,
        "consumedCapacity": {SHARE: str(grant.share_milli), MEMORY: format_bytes(grant.memory_bytes)},
    }


def node_of(claim: ApiResourceClaim) -> NodeName | None:
    """The node of an allocated claim; None without devices, or with some of another driver or of several nodes."""
    pools = {each.pool if each.driver == DRIVER else "" for each in claim.results}
    return NodeName(pools.pop()) if len(pools) == 1 and "" not in pools else None


def nodes_of(claim: ApiResourceClaim) -> frozenset[NodeName]:
    """All nodes on which a claim holds our devices; one, unless others wrote its allocation."""
    return frozenset(NodeName(each.pool) for each in claim.results if each.driver == DRIVER)


def held_by(claim: ApiResourceClaim, node: NodeName, part: GpuPart | None) -> Allocation:
    """What a claim holds on a node that has these cards."""
    cards = {device_name(card.id): card for card in part.cards} if part is not None else {}
    mine = (each for each in claim.results if each.driver == DRIVER and each.pool == node and not each.admin_access)
    return holding(claim.uid, node, _grants(mine, cards))


def holding(claim_uid: str, node: NodeName, grants: Iterable[GpuGrant]) -> Allocation:
    """An allocation that counts these grants, for a holder that is not a pod."""
    counted = tuple(grants)
    containers: dict[ContainerName, dict[Any, Any]] = {_HELD: {GPU.name: counted}} if counted else {}
    return Allocation(gen=0, pod=holder_of(claim_uid, node), node=node, containers=containers)


def _grants(results: Iterable[DeviceResult], cards: Mapping[str, Card]) -> Iterator[GpuGrant]:
    for each in results:
        card = cards.get(each.device)
        if card is not None:
            yield GpuGrant(
                card=CardId(card.id),
                share_milli=_consumed(each, SHARE, WHOLE_MILLI),
                limit_milli=WHOLE_MILLI,
                memory_bytes=_consumed(each, MEMORY, card.memory_bytes),
            )


def _consumed(result: DeviceResult, name: str, whole: int) -> int:
    """The consumed amount, at most the whole; the whole if none is given, or a malformed one."""
    try:
        return min(max(0, int(parse_quantity(result.consumed_capacity[name]))), whole)
    except (KeyError, DecodeError):
        return whole
