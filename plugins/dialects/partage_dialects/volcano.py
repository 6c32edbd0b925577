"""Volcano: `volcano.sh/vgpu-number`, `vgpu-memory`, `vgpu-memory-percentage` and `vgpu-cores`, as limits.

Its older sharing is read by `volcano_gpushare`; a pod may use only one of the two. Percent of memory take precedence
over MiB. `volcano.sh/vgpu-podgroup-policy: spread` keeps the pods of one group on different cards.

As in Volcano: containers with cards give a number or an amount of memory; the number 0 means none; init containers get
no vGPUs. Values that Volcano ignores because it can't parse them are refused; so are cores above 100 and percentages
above 100, which fit nowhere in Volcano.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from partage_dialects.amounts import refused
from partage_dialects.vgpu import (
    FULL,
    Amounts,
    CardKeys,
    VgpuSettings,
    amount,
    encoded,
    request_of,
    settings_from,
    wishes_of,
)
from partage_dialects.volcano_gpushare import RESOURCES as OLDER
from partage_dialects.volcano_gpushare import read_gpushare
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.gpu import GPU, NO_TAGS, GpuRequest, Tags
from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.names import ContainerName, Kind
from partage_plugins.api.pods import Pod, PodContainer
from partage_plugins.api.words import DialectWords
from partage_plugins.hooks import hookimpl

SETTINGS: Final = "PARTAGE_VOLCANO_"
NUMBER: Final = "volcano.sh/vgpu-number"
MEMORY: Final = "volcano.sh/vgpu-memory"
PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"
CORES: Final = "volcano.sh/vgpu-cores"
RESOURCES: Final = frozenset((NUMBER, MEMORY, PERCENTAGE, CORES))
KEYS: Final = CardKeys(
    use_id="volcano.sh/vgpu-use-gpuuuid",
    no_id="volcano.sh/vgpu-nouse-gpuuuid",
    mode="volcano.sh/vgpu-mode",
    use_beats_no=True,
)
GIVEN: Final = "volcano.sh/vgpu-ids-new"
NODE: Final = "volcano.sh/vgpu-node"
PHASE: Final = "volcano.sh/bind-phase"
GROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")


class VolcanoDialect:
    def __init__(self, settings: VgpuSettings | None = None) -> None:
        """Settings are passed in tests; a scheduler reads them from its environment."""
        self._settings = settings or settings_from(os.environ, SETTINGS)

    @hookimpl
    def partage_resources(self) -> Sequence[str]:
        return sorted(RESOURCES | OLDER)

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return (
            DialectWords(
                system="Volcano",
                where="limits",
                asking=RESOURCES | OLDER,
                beside=frozenset((*KEYS[:3], GROUP_POLICY)),
                known=frozenset((GIVEN, NODE, "volcano.sh/gpu-index")),
                prefixes=("volcano.sh/vgpu-", "volcano.sh/gpu-"),
                remedy=f"A pod asks in a container's limits, by {NUMBER} or {MEMORY}",
            ),
        )

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        asking, older = _asking(pod, RESOURCES), _asking(pod, OLDER)
        if asking and older:
            word = next(iter(OLDER.intersection(older[0].limits)))
            raise refused(
                f"containers.{older[0].name}.limits[{word}]", older[0].limits[word], "either this or vGPUs in a pod"
            )
        asks: Mapping[ContainerName, object] = {}
        if asking:
            asks = self._vgpus(pod, asking)
        elif older:
            asks = read_gpushare(pod, memory_factor=self._settings.memory_factor)
        return {name: {GPU.name: ask} for name, ask in asks.items()} or None

    @hookimpl
    def partage_mirror(self, pod: Pod, allocation: Allocation) -> Mapping[str, str] | None:
        """Containers without a vGPU have no place in the list."""
        asking = _asking(pod, RESOURCES)
        if not asking:
            return None
        given = [encoded(grants) for each in asking if (grants := allocation.given(each.name, GPU))]
        return {GIVEN: ";".join(given), NODE: allocation.node, PHASE: "success"}

    def _vgpus(self, pod: Pod, asking: Sequence[PodContainer]) -> Mapping[ContainerName, object]:
        wishes = wishes_of(pod.annotations, KEYS, tags=_tags(pod))
        found = ((container.name, _request(container, wishes, self._settings)) for container in asking)
        return {name: request for name, request in found if request is not None}


def _asking(pod: Pod, words: frozenset[str]) -> list[PodContainer]:
    return [container for container in pod.containers if not words.isdisjoint(container.limits)]


def _request(container: PodContainer, wishes: GpuRequest, settings: VgpuSettings) -> GpuRequest | None:
    at = f"containers.{container.name}.limits"
    if container.role != "app":
        raise refused(at, "a vGPU", "vGPUs for containers that are no init containers")
    number = amount(container, NUMBER, largest=MAX_CARDS)
    if number is None and MEMORY not in container.limits:
        raise refused(f"{at}[{NUMBER}]", None, f"{NUMBER} or {MEMORY} beside {PERCENTAGE} and {CORES}")
    if number == 0:
        return None
    memory, percentage = _memory(container, settings)
    cores = amount(container, CORES, largest=FULL)
    amounts = Amounts(
        number=1 if number is None else number,
        memory_mib=memory,
        percentage=percentage,
        cores=settings.default_cores if cores is None else cores,
    )
    return request_of(amounts, wishes)


def _memory(container: PodContainer, settings: VgpuSettings) -> tuple[int | None, int | None]:
    """Either MiB, or percent of each card."""
    percentage, memory = amount(container, PERCENTAGE, largest=FULL), amount(container, MEMORY)
    if percentage == 0:
        raise refused(f"containers.{container.name}.limits[{PERCENTAGE}]", "0", f"from 1 to {FULL}")
    if percentage is not None:
        return None, percentage
    if memory:
        return memory * settings.memory_factor, None
    return (settings.default_memory_mib, None) if settings.default_memory_mib else (None, FULL)


def _tags(pod: Pod) -> Tags:
    policy = pod.annotations.get(GROUP_POLICY)
    if policy is None:
        return NO_TAGS
    if policy != "spread":
        raise refused(GROUP_POLICY, policy, "spread")
    group = next((pod.annotations[key] for key in GROUPS if pod.annotations.get(key)), None)
    if group is None:
        return NO_TAGS  # as there: a pod without a group has no group to be kept apart from
    name = sha256(f"{pod.ref.namespace}/{group}".encode()).hexdigest()[:32]
    return Tags(anti_affinity=f"podgroup-{name}")
