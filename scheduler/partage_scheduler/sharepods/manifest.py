"""The pod of a SharePod: its spec, labels and annotations, and where it must be placed.

A pod with `nodeName` bypasses the scheduler and gets no signed allocation. So a SharePod's node becomes a node
affinity, and its GPUID a pin: to the pair's card by its id, or, for the first pod of a pair, to an idle card. The
latter is an affinity tag that no other pod has, since a card in use fits only if it has the same tag. Both are written
for KubeShare's dialect and for ours, whichever the SharePod uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import field

from partage_plugins.api import ContainerName, Namespace, Pod, PodContainer, PodName, PodRef, PodUid
from partage_plugins.api.keys import AFFINITY, CARDS
from partage_plugins.api.kinds import Role
from partage_plugins.errors import DecodeError
from partage_scheduler.objects.base import Object
from partage_scheduler.objects.selectors import REQUIRED
from partage_scheduler.sharepods.objects import GPUID, GROUP_VERSION, KIND, OURS, PREFIX, Owner, SharePod

Manifest = dict[str, Any]
SCHED_AFFINITY: Final = PREFIX + "sched_affinity"
_LEFT_OUT: Final = frozenset((GPUID, "kubectl.kubernetes.io/last-applied-configuration"))
"""A GPUID chosen by a user stays on the SharePod: pods are pinned by card ids."""


class WrittenAmounts(Object, frozen=True, kw_only=True):
    """Amounts as users write them in YAML: they may be numbers, since the field has no API type."""

    limits: Mapping[str, str | int | float] | None = {}
    requests: Mapping[str, str | int | float] | None = {}


class WrittenContainer(Object, frozen=True, kw_only=True):
    name: str
    restart_policy: str | None = None
    resources: WrittenAmounts = WrittenAmounts()


class WrittenTerm(Object, frozen=True, kw_only=True):
    match_fields: tuple[Any, ...] | None = None


class WrittenTerms(Object, frozen=True, kw_only=True):
    node_selector_terms: tuple[WrittenTerm, ...] | None = None


class WrittenNodeAffinity(Object, frozen=True, kw_only=True):
    required: WrittenTerms | None = field(default=None, name=REQUIRED)


class WrittenAffinity(Object, frozen=True, kw_only=True):
    node_affinity: WrittenNodeAffinity | None = None


class WrittenSpec(Object, frozen=True, kw_only=True):
    """The parts of a spec that are needed to create a pod; the API server validates all of it."""

    containers: tuple[WrittenContainer, ...]
    init_containers: tuple[WrittenContainer, ...] | None = ()
    node_name: str = ""
    restart_policy: str = "Always"
    affinity: WrittenAffinity | None = None


def read_spec(share: SharePod) -> WrittenSpec:
    """Raises `DecodeError` if it is no pod spec."""
    try:
        return msgspec.convert(share.spec, WrittenSpec)
    except msgspec.ValidationError as error:
        raise DecodeError("SharePod", path="spec", value="no PodSpec", allowed=str(error)) from None


def as_seen(share: SharePod, spec: WrittenSpec) -> Pod:
    """The pod as dialects will read it."""
    ref = PodRef(namespace=Namespace(share.namespace), name=PodName(share.name), uid=PodUid(share.metadata.uid))
    first = [_shown(each, is_init=True) for each in spec.init_containers or ()]
    apps = [_shown(each, is_init=False) for each in spec.containers]
    notes = _annotations(share)
    return Pod(ref=ref, labels=share.metadata.labels, annotations=notes, containers=(*first, *apps))


def pod_of(share: SharePod, *, scheduler: str, pin: Mapping[str, str] | None = None) -> Manifest:
    """The pod to create; `pin` are annotations that select the card. The spec must be readable by `read_spec`."""
    spec = dict(share.spec)
    spec["schedulerName"] = scheduler
    if node := spec.pop("nodeName", ""):
        spec["affinity"] = _at(node, spec.get("affinity") or {})
    owner = Owner(
        api_version=GROUP_VERSION,
        kind=KIND,
        name=share.name,
        uid=share.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": share.name,
            "namespace": share.namespace,
            "labels": {**share.metadata.labels, OURS: "true"},
            "annotations": {**_annotations(share), **(pin or {})},
            "ownerReferences": [msgspec.to_builtins(owner)],
        },
        "spec": spec,
    }


def pinned_to(card: str) -> Mapping[str, str]:
    return {CARDS: card, GPUID: card}


def on_idle_card(share: SharePod) -> Mapping[str, str]:
    tag = f"sharepod-{share.metadata.uid}"
    return {AFFINITY: tag, SCHED_AFFINITY: tag}


def _annotations(share: SharePod) -> dict[str, str]:
    return {name: text for name, text in share.metadata.annotations.items() if name not in _LEFT_OUT}


def _at(node: str, affinity: Manifest) -> Manifest:
    """Adds the node to the affinity. Terms are alternatives, so each gets it; an empty one matches no node."""
    of_nodes = affinity.get("nodeAffinity") or {}
    terms = (of_nodes.get(REQUIRED) or {}).get("nodeSelectorTerms")
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    if terms is None:
        bound = [{"matchFields": [here]}]
    else:
        bound = [{**term, "matchFields": [*(term.get("matchFields") or ()), here]} if term else term for term in terms]
    return {**affinity, "nodeAffinity": {**of_nodes, REQUIRED: {"nodeSelectorTerms": bound}}}


def _shown(each: WrittenContainer, *, is_init: bool) -> PodContainer:
    role: Role = "app" if not is_init else "sidecar" if each.restart_policy == "Always" else "init"
    limits, requests = (
        {name: str(amount) for name, amount in (amounts or {}).items()}
        for amounts in (each.resources.limits, each.resources.requests)
    )
    return PodContainer(name=ContainerName(each.name), role=role, limits=limits, requests=requests)
