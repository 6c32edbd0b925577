"""The scheduler's metrics page against nodes and pods. Pure.

The scheduler counts every 15 s, bindings in flight are nowhere in the API server yet, and an allocation that was
changed after the scheduler read it still counts as before: so a difference is a warning, worth a second look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from partage_cli.audit.observation import SeenCluster, SeenPod
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import Unseen
from partage_plugins.api import GPU, Allocation, Inventory, NodeName
from partage_scheduler.cluster import Unknown
from partage_scheduler.cluster.fullness import fullness
from partage_scheduler.cluster.unknown import everywhere
from partage_scheduler.objects import ApiPod

Asked = Callable[[ApiPod], Unknown | None]
"""The request of a pod without an allocation, if it has one."""
_LINE: Final = re.compile(r"^partage_scheduler_(\w+) ([-+.0-9eE]+|NaN)$", re.MULTILINE)
_CLOSE: Final = 1e-6
_LEADS, _IN_FLIGHT, _CARDS = "leads", "in_flight_pods", "cards"
_SHARE, _MEMORY = "allocated_share_ratio", "allocated_memory_ratio"


def scheduler(page: str | Unseen, cluster: SeenCluster, asks: Asked) -> Iterator[Finding]:
    """The scheduler has the same number of cards, and the same allocated ratios."""
    about = About("scheduler")
    if isinstance(page, Unseen):
        yield about.unknown(str(page), do="say where its metrics are: http://HOST:PORT/metrics")
        return
    said = {name: float(value) for name, value in _LINE.findall(page)}
    if missing := {_LEADS, _IN_FLIGHT, _CARDS, _SHARE, _MEMORY} - said.keys():
        yield about.unknown(
            f"no metrics of a scheduler: {', '.join(sorted(missing))} missing", do="look at the address"
        )
    elif not said[_LEADS]:
        yield about.unknown("this one does not lead, and knows nothing", do="ask the one that is ready")
    else:
        yield from _compared(about, said, _counted(cluster, asks))


def _compared(about: About, said: Mapping[str, float], counted: Mapping[str, float]) -> Iterator[Finding]:
    busy = f" ({said[_IN_FLIGHT]:g} bindings are under way)" if said[_IN_FLIGHT] else ""
    found = [
        about.warning(f"{name} is {said[name]:g} for it, {number:g} by what stands on nodes and pods{busy}", do=_AGAIN)
        for name, number in counted.items()
        if abs(said[name] - number) > _CLOSE
    ]
    yield from found or [about.ok(f"it counts {said[_CARDS]:g} cards, and what is given away of them, as they stand")]


_AGAIN: Final = "ask again in 15 s; if it stays so, look at its log and restart it"


def _counted(cluster: SeenCluster, asks: Asked) -> dict[str, float]:
    held: dict[str, list[Allocation]] = {}
    for each in cluster.pods:
        node = cluster.nodes.get(each.pod.node)
        if node is not None and node.inventory is not None:
            held.setdefault(each.pod.node, []).extend(_allocations(each, node.inventory, asks))
    full = fullness((node.inventory, held.get(name, ())) for name, node in cluster.nodes.items() if node.inventory)
    return {_CARDS: full.cards, _SHARE: full.share_given, _MEMORY: full.memory_given}


def _allocations(each: SeenPod, inventory: Inventory, asks: Asked) -> Iterator[Allocation]:
    """A pod's allocations as they count now: the signed one, or else its request on every card."""
    if each.allocation is not None:
        yield each.allocation
    elif (unknown := asks(each.pod)) is not None:
        yield everywhere(unknown, each.pod.uid, NodeName(each.pod.node), inventory, (GPU,)).allocation
