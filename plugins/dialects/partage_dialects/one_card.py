"""Requests that dialects make for a pod as a whole: its app containers share them.

Our own policies, `partage.dev/cards` and related keys, are added as for pods of the native dialect. They are for those
who create pods of such a dialect for others, or need constraints that it can't express.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from partage_dialects.amounts import refused
from partage_plugins.api import keys
from partage_plugins.api.gpu import GPU, GpuRequest, Tags
from partage_plugins.api.names import BudgetName, ContainerName, Kind
from partage_plugins.api.pods import Budgeted, Pod
from partage_plugins.codecs.native_annotations import read_policies

Asks: TypeAlias = Mapping[ContainerName, Mapping[Kind, object]]
POD: Final = BudgetName("pod")
_FIELDS: Final = ("models", "models_not", "cards", "cards_not", "policy", "repeats_cards")


def asked_together(pod: Pod, wanted: GpuRequest) -> Asks:
    """One budget for all app containers; for a single one a request of its own, which any node can read."""
    apps = tuple(container.name for container in pod.containers if container.role == "app")
    asks = dict.fromkeys(apps, wanted)
    if not keys.POLICIES.isdisjoint(pod.annotations):
        asks = _with_policies(pod, asks)
    if len(apps) == 1:
        return {name: {GPU.name: ask} for name, ask in asks.items()}
    return {name: {GPU.name: Budgeted(budget=POD, ask=ask)} for name, ask in asks.items()}


def _with_policies(pod: Pod, asks: Mapping[ContainerName, GpuRequest]) -> dict[ContainerName, GpuRequest]:
    for key in (keys.LIMIT_MILLI, keys.BUDGET, keys.TOPOLOGY, keys.MOVABLE):
        if key in pod.annotations:
            raise refused(key, pod.annotations[key], "nothing in a pod that asks in another dialect")
    names = tuple(container.name for container in pod.containers)
    policies = read_policies(pod.annotations, names=names, asking=tuple(asks))
    return {name: _over(wanted, policies[name].wishes) for name, wanted in asks.items()}


def _over(wanted: GpuRequest, wishes: GpuRequest) -> GpuRequest:
    said = {field: value for field in _FIELDS if (value := getattr(wishes, field))}
    ours, others = wishes.tags, wanted.tags
    tags = Tags(
        affinity=ours.affinity or others.affinity,
        anti_affinity=ours.anti_affinity or others.anti_affinity,
        exclusion=ours.exclusion or others.exclusion,
    )
    return replace(wanted, tags=tags, **said)
