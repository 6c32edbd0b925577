"""The gathered facts, as their sources state them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_base.cri import ListedContainer
from partage_cli.doctor.local_node import Unseen
from partage_isolation.wire.messages import BrokerReport
from partage_plugins.api import Allocation, AnyKind, Inventory
from partage_plugins.api.claims import ClaimRecord, ClaimUid
from partage_plugins.api.keys import ALLOCATION, INVENTORY, SIGNATURE
from partage_plugins.api.names import KeyId
from partage_plugins.codecs import decode_allocation, decode_inventory, decode_signature, verify
from partage_plugins.errors import DecodeError, SignatureRefused
from partage_scheduler.objects import ApiNode, ApiPod

Keys = Mapping[KeyId, Ed25519PublicKey]


@dataclass(frozen=True, kw_only=True)
class SeenPod:
    """A pod that has not terminated, with its allocation."""

    pod: ApiPod
    allocation: Allocation | None = None
    key: KeyId | None = None
    """Key id in the signature annotation, unverified."""
    fault: str = ""
    """Why the allocation is invalid."""

    @property
    def name(self) -> str:
        return f"{self.pod.namespace}/{self.pod.name}"


@dataclass(frozen=True, kw_only=True)
class SeenNode:
    """A node with its inventory."""

    node: ApiNode
    inventory: Inventory | None = None
    fault: str = ""
    beat_age_s: float | None = None
    """Age of the advertiser's last heartbeat; None if there never was one."""


@dataclass(frozen=True, kw_only=True)
class SeenCluster:
    """The API server's state."""

    pods: tuple[SeenPod, ...]
    nodes: Mapping[str, SeenNode]
    keys: Keys = field(default_factory=dict[KeyId, Ed25519PublicKey])
    """If empty, no signature was checked."""
    unread: tuple[str, ...] = ()
    """Undecodable objects, each with the reason."""
    claims: frozenset[ClaimUid] | None = None
    """Allocated claims; None if the API server does not list them."""


@dataclass(frozen=True, kw_only=True)
class SeenClaims:
    """The claims that this node's DRA driver prepared."""

    records: tuple[ClaimRecord, ...] = ()
    unread: tuple[str, ...] = ()
    """Undecodable records, each with the reason."""
    files: frozenset[ClaimUid] = frozenset()
    """Claims that have a CDI file."""


@dataclass(frozen=True, kw_only=True)
class SeenHere:
    """This node's own state; `Unseen` for each source that could not be queried."""

    name: str
    inventory: str | Unseen
    containers: tuple[ListedContainer, ...] | Unseen
    broker: BrokerReport | Unseen
    claims: SeenClaims | Unseen = SeenClaims()


def seen_pods(pods: Iterable[ApiPod], kinds: Iterable[AnyKind], keys: Keys) -> Iterator[SeenPod]:
    """Pods with their allocations; signatures are verified if there are keys."""
    known = tuple(kinds)
    for pod in pods:
        text = pod.metadata.annotations.get(ALLOCATION)
        yield SeenPod(pod=pod) if text is None else _with_allocation(pod, text, known, keys)


def seen_node(node: ApiNode, kinds: Iterable[AnyKind], beat_age_s: float | None) -> SeenNode:
    text = node.metadata.annotations.get(INVENTORY)
    if text is None:
        return SeenNode(node=node, beat_age_s=beat_age_s)
    try:
        return SeenNode(node=node, inventory=decode_inventory(text, kinds), beat_age_s=beat_age_s)
    except DecodeError as error:
        return SeenNode(node=node, fault=str(error), beat_age_s=beat_age_s)


def _with_allocation(pod: ApiPod, text: str, kinds: tuple[AnyKind, ...], keys: Keys) -> SeenPod:
    key: KeyId | None = None
    try:
        signature = pod.metadata.annotations.get(SIGNATURE, "")
        key = decode_signature(signature)[0]
        if keys:
            verify(text, signature, keys)
        allocation = decode_allocation(text, kinds)
    except (DecodeError, SignatureRefused) as error:
        return SeenPod(pod=pod, key=key, fault=str(error))
    if (allocation.pod, allocation.node) != (pod.uid, pod.node):
        whose = f"allocation: it is that of pod {allocation.pod} on node {allocation.node}"
        return SeenPod(pod=pod, key=key, fault=whose)
    return SeenPod(pod=pod, key=key, allocation=allocation)
