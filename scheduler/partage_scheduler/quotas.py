"""ResourceQuotas of cards, checked against what pods hold instead of what they first requested.

The API server counts a pod's specification, which never changes. In a namespace with resized pods usage is therefore
counted here: each pod on a node with its request, and resized pods with the larger of request and allocation. Amounts
that a pod gave back are still counted by the API server, and so they are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from partage_plugins.api import GPU, Allocation
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from partage_plugins.api.reasons import Reason
from partage_plugins.api.usage import peak
from partage_plugins.codecs.quantity import format_bytes
from partage_scheduler.cluster import Cluster
from partage_scheduler.objects import ApiPod, ApiQuota
from partage_scheduler.predicates.needs import amount, asked_by

Amounts = Mapping[str, int]
QUOTA: Final = Reason("quota", "exceeded quota: {}", lasts=True)
"""Resized pods exceed the namespace's quota; preempting pods of other namespaces doesn't help."""


class Quotas:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_namespace: dict[str, dict[str, ApiQuota]] = {}

    def put(self, quota: ApiQuota) -> None:
        self.remove(quota)
        if quota.spec.hard:
            self._by_namespace.setdefault(quota.namespace, {})[quota.name] = quota

    def remove(self, quota: ApiQuota) -> None:
        found = self._by_namespace.get(quota.namespace, {})
        found.pop(quota.name, None)
        if not found:
            self._by_namespace.pop(quota.namespace, None)

    def against(self, pod: ApiPod, wanted: Allocation | None = None) -> Reason | None:
        """Why quotas reject a pod: a pending pod with its request, or a pod on a node with its `wanted` allocation.

        The API server counted a pending pod on creation, so it is checked only if pods of its namespace were resized.
        """
        quotas = self._by_namespace.get(pod.namespace)
        has_grown = any(placed.pod.namespace == pod.namespace for placed in self._cluster.placed_pods.resized())
        if not quotas or (wanted is None and not has_grown):
            return None
        mine = asked_by(pod) if wanted is None else _larger(asked_by(pod), held_by(wanted))
        used = dict(mine)
        for other in self._others(pod):
            for key, number in other.items():
                used[key] = used.get(key, 0) + number
        return next((reason for quota in quotas.values() for reason in _beyond(quota, used, mine)), None)

    def _others(self, pod: ApiPod) -> Iterator[Amounts]:
        for placed in self._cluster.placed_pods.of_namespace(pod.namespace):
            if placed.pod.uid != pod.uid:
                asked = asked_by(placed.pod)
                yield _larger(asked, held_by(placed.allocation)) if placed.is_resized else asked


def held_by(allocation: Allocation) -> Amounts:
    """Amounts as quotas count a request: totals over cards, and the peak over the pod's lifetime."""
    grants = [grant for each in allocation.of(GPU).values() for grant in each]
    return {
        GPU_MILLI: peak([(grant.role, grant.share_milli) for grant in grants]),
        GPU_MEMORY: peak([(grant.role, grant.memory_bytes) for grant in grants]),
    }


def _larger(asked: Amounts, held: Amounts) -> Amounts:
    return {key: max(asked.get(key, 0), held.get(key, 0)) for key in asked.keys() | held.keys()}


def _beyond(quota: ApiQuota, used: Amounts, mine: Amounts) -> Iterable[Reason]:
    for key, text in sorted(quota.spec.hard.items()):
        most, number = amount(key, text, 0), used.get(key, 0)
        if mine.get(key) and number > most:
            words = (format_bytes(each) if key == GPU_MEMORY else str(each) for each in (number, most))
            yield QUOTA.of("{}, {}: {} with this one, limited: {}".format(quota.name, key, *words))
