"""HAMi: `nvidia.com/gpu`, `gpumem`, `gpumem-percentage`, `gpucores` and `priority`, as limits or requests.

NVIDIA's device plugin uses such keys too, so they are read only if the operator assigns them to HAMi.

As in HAMi: MiB take precedence over percent of memory; percent and cores above 100 count as 100; a container with a
whole card's memory and no cores has the card alone. `nvidia.com/priority` is accepted without effect: a pod's priority
comes from its PriorityClass. Values that HAMi would ignore because it can't parse them are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from partage_dialects.amounts import refused
from partage_dialects.settings import NVIDIA_GPU
from partage_dialects.settings import settings_from as dialect_settings_from
from partage_dialects.vgpu import (
    FULL,
    NO_TYPE,
    USE_TYPE,
    Amounts,
    CardKeys,
    VgpuSettings,
    amount,
    encoded,
    request_of,
    settings_from,
    wishes_of,
)
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.gpu import GPU, NUMA, GpuRequest
from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.names import ContainerName, Kind
from partage_plugins.api.pods import Pod, PodContainer
from partage_plugins.api.topology import Bundle
from partage_plugins.api.words import DialectWords
from partage_plugins.hooks import hookimpl

SETTINGS: Final = "PARTAGE_HAMI_"
NUMBER: Final = "nvidia.com/gpu"
MEMORY: Final = "nvidia.com/gpumem"
PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
CORES: Final = "nvidia.com/gpucores"
PRIORITY: Final = "nvidia.com/priority"
RESOURCES: Final = frozenset((NUMBER, MEMORY, PERCENTAGE, CORES, PRIORITY))
_AMOUNTS: Final = RESOURCES - {PRIORITY}
KEYS: Final = CardKeys(
    use_id="nvidia.com/use-gpuuuid",
    no_id="nvidia.com/nouse-gpuuuid",
    mode="nvidia.com/vgpu-mode",
    use_beats_no=False,
)
CARD_POLICY: Final = "hami.io/gpu-scheduler-policy"
NODE_POLICY: Final = "hami.io/node-scheduler-policy"
NUMA_BIND: Final = "nvidia.com/numa-bind"
MUTEX: Final = "mutex"
_TRUE: Final = frozenset(("1", "t", "T", "true", "True", "TRUE"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "False", "FALSE"))
_POLICIES: Final[Mapping[str, str]] = {
    "binpack": "binpack",
    "spread": "spread",
    "numa": "topology",
    "topology-aware": "topology",
}
_CARD_POLICIES: Final = frozenset((*_POLICIES, MUTEX))
GIVEN: Final = "hami.io/vgpu-devices-allocated"
NODE: Final = "hami.io/vgpu-node"
PHASE: Final = "hami.io/bind-phase"
_KNOWN: Final = frozenset((GIVEN, NODE, PHASE))
_NODE_POLICIES: Final = ("binpack", "spread")


class HamiDialect:
    def __init__(self, settings: VgpuSettings | None = None) -> None:
        """Settings are passed in tests; a scheduler reads them from its environment."""
        self._settings = settings or settings_from(os.environ, SETTINGS)
        self._reads = settings is not None or dialect_settings_from(os.environ).nvidia_gpu == "hami"

    @hookimpl
    def partage_resources(self) -> Sequence[str]:
        return sorted(RESOURCES) if self._reads else ()

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        """`nvidia.com/gpu` is left to the dialect of whole cards, regardless of which dialect reads it."""
        return (
            DialectWords(
                system="HAMi",
                where="limits",
                asking=RESOURCES - {NUMBER},
                beside=frozenset((*KEYS[:3], USE_TYPE, NO_TYPE, NUMA_BIND, CARD_POLICY, NODE_POLICY)),
                known=_KNOWN,
                prefixes=("hami.io/gpu-", "hami.io/node-scheduler-"),
                is_read=self._reads,
                remedy=f"HAMi's words are read where the operator sets {NVIDIA_GPU} (the chart's nvidiaGpu) to hami",
            ),
        )

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        if not self._reads:
            return None
        asking = _asking(pod)
        if not asking:
            return None
        wishes, is_bound = _wishes(pod.annotations), _is_bound(pod.annotations)
        found = ((container.name, _request(container, wishes, self._settings)) for container in asking)
        return {
            name: {GPU.name: _on_one_numa_node(request) if is_bound else request}
            for name, request in found
            if request is not None
        } or None

    @hookimpl
    def partage_mirror(self, pod: Pod, allocation: Allocation) -> Mapping[str, str] | None:
        """Each container has a place in the list, init containers first."""
        if not (self._reads and _asking(pod)):
            return None
        given = [encoded(allocation.given(each.name, GPU)) for each in pod.containers]
        return {GIVEN: ";".join(given), NODE: allocation.node, PHASE: "success"}


def _asking(pod: Pod) -> list[PodContainer]:
    return [
        each for each in pod.containers if not (_AMOUNTS.isdisjoint(each.limits) and _AMOUNTS.isdisjoint(each.requests))
    ]


def _request(container: PodContainer, wishes: GpuRequest, settings: VgpuSettings) -> GpuRequest | None:
    number = amount(container, NUMBER, largest=MAX_CARDS)
    if number == 0:
        return None
    percentage, memory = amount(container, PERCENTAGE), amount(container, MEMORY)
    cores = amount(container, CORES)
    if cores is None:
        has_all = memory is None if percentage is None else percentage == FULL
        cores = FULL if has_all else settings.default_cores
    mib = 0 if percentage else settings.default_memory_mib
    if memory:
        mib = memory * settings.memory_factor
    amounts = Amounts(
        number=settings.default_number if number is None else number,
        memory_mib=mib or None,
        percentage=None if mib else min(percentage or FULL, FULL),
        cores=min(cores, FULL),
    )
    return request_of(amounts, wishes)


def _on_one_numa_node(request: GpuRequest) -> GpuRequest:
    return replace(request, bundles=(Bundle(NUMA, request.count),)) if request.count > 1 else request


def _is_bound(said: Mapping[str, str]) -> bool:
    text = said.get(NUMA_BIND)
    if text is not None and text not in _TRUE and text not in _FALSE:
        raise refused(NUMA_BIND, text, "true or false")
    return text in _TRUE


def _wishes(said: Mapping[str, str]) -> GpuRequest:
    wishes = wishes_of(said, KEYS)
    if CARD_POLICY not in said and NODE_POLICY not in said:
        return wishes
    node, names = said.get(NODE_POLICY), list[str]()
    if node is not None and node.strip() not in _NODE_POLICIES:
        raise refused(NODE_POLICY, node, " or ".join(_NODE_POLICIES))
    if CARD_POLICY in said:
        names = [name.strip() for name in said[CARD_POLICY].split(",")]
    if not _CARD_POLICIES.issuperset(names):
        raise refused(CARD_POLICY, said[CARD_POLICY], f"{', '.join(sorted(_CARD_POLICIES))}, separated by commas")
    policy = _mix([_POLICIES[name] for name in names if name != MUTEX]) or (node and node.strip())
    return replace(wishes, policy=policy, idle_cards=MUTEX in names)


def _mix(policies: Sequence[str]) -> str | None:
    """The first policy dominates, the next breaks ties; of two contradicting ones the first is kept."""
    orders = list(dict.fromkeys(policies))
    if "binpack" in orders and "spread" in orders:
        orders.remove(max("binpack", "spread", key=orders.index))
    return ",".join(f"{order}={len(orders) - place}" for place, order in enumerate(orders)) or None
