"""Volcano's older GPU sharing: `volcano.sh/gpu-memory` and `volcano.sh/gpu-number`, as limits.

`gpu-memory` is MiB of one card for the whole pod: app containers that request some share the sum. `gpu-number` is the
number of whole, otherwise idle cards. `volcano.sh/gpu-index` on a pod is written by its scheduler, and is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partage_dialects.amounts import refused
from partage_dialects.one_card import POD
from partage_dialects.vgpu import amount
from partage_plugins.api.gpu import MIB, GpuRequest
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI
from partage_plugins.api.names import ContainerName
from partage_plugins.api.pods import Budgeted, Pod

MEMORY: Final = "volcano.sh/gpu-memory"
NUMBER: Final = "volcano.sh/gpu-number"
RESOURCES: Final = frozenset((MEMORY, NUMBER))


def read_gpushare(pod: Pod, *, memory_factor: int) -> Mapping[ContainerName, object]:
    """Each container's request, some of them shared; empty if there is none."""
    said = {container.name: amount(container, MEMORY) for container in pod.containers}
    memory = {name: units * memory_factor for name, units in said.items() if units}
    asks: dict[ContainerName, object] = {name: _part(mib) for name, mib in memory.items()}
    together = [each.name for each in pod.containers if each.name in memory and each.role == "app"]
    if len(together) > 1:
        whole = _part(sum(memory[name] for name in together))
        asks |= dict.fromkeys(together, Budgeted(budget=POD, ask=whole))
    for container in pod.containers:
        number = amount(container, NUMBER, largest=MAX_CARDS)
        if number and container.name in memory:
            raise refused(f"containers.{container.name}.limits[{NUMBER}]", str(number), f"either this or {MEMORY}")
        if number:
            asks[container.name] = GpuRequest(
                count=number, share_milli=WHOLE_MILLI, memory_milli=WHOLE_MILLI, idle_cards=True
            )
    return asks


def _part(mib: int) -> GpuRequest:
    """Memory of a card, with the time that others leave, so not on a card whose share is used up."""
    return GpuRequest(memory_bytes=mib * MIB, spare_share=True)
