"""Decides whether a pod on a node may be resized on its cards, and books the result at once. Pure.

Growth is decided by the same plugins as a new pod's request, restricted to the pod's node and cards: beside all other
pods, beside resources kept for pods of at least its priority, and within the quotas of its namespace. Shrinking needs
no room. Until it is certain whether the new allocation is on the pod, the larger of each amount counts.
"""

from __future__ import annotations

from msgspec import Struct

from partage_plugins.api import GPU, Allocation
from partage_plugins.api.keys import RESIZE
from partage_plugins.codecs.critical import RESIZE as READS_RESIZE
from partage_plugins.codecs.resize import read_resize, read_wait
from partage_plugins.errors import PartageError, PluginBroken, Refused
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.cycle import Cycle
from partage_scheduler.objects import ApiPod
from partage_scheduler.quotas import Quotas
from partage_scheduler.resize.room import no_room
from partage_scheduler.resize.wanted import grows, most, wanted_of


class Granted(Struct, frozen=True):
    """Booked, and to be written to the pod."""

    pod: ApiPod
    before: Allocation
    booked: Allocation
    wanted: Allocation


class Stays(Struct, frozen=True):
    """The pod keeps its current amounts."""

    pod: ApiPod
    why: str
    waits: bool
    """Whether to try again; otherwise it is refused until the request changes."""


class Resizes:
    def __init__(self, cycle: Cycle, quotas: Quotas) -> None:
        self._cycle, self._cluster, self._quotas = cycle, cycle.cluster, quotas

    def decide(self, placed: PlacedPod, now: float) -> Granted | Stays | None:
        """None if it already has what it requests. Raises only `PluginBroken`."""
        try:
            waits = read_wait(placed.pod.metadata.annotations)
            wanted = self._wanted(placed)
        except PartageError as error:
            return Stays(placed.pod, str(error), waits=False)
        before = placed.allocation
        if wanted.containers == before.containers:
            return None
        if before.suspended is not None:
            return Stays(placed.pod, "the pod is suspended", waits)
        try:
            why = self._in_the_way(placed, wanted, now)
        except PluginBroken:
            raise
        except PartageError as error:
            why = str(error)
        if why is not None:
            return Stays(placed.pod, why, waits)
        booked = most(before, wanted)
        self._cluster.rebook(placed.pod.uid, before, booked)
        return Granted(placed.pod, before, booked, wanted)

    def _wanted(self, placed: PlacedPod) -> Allocation:
        held = placed.held
        if held.unknown is not None or not (held.allocation.containers or placed.pod.spec.resource_claims):
            raise Refused("the pod has no allocation of partage that could be changed")
        known = self._cluster.fleet.get(placed.node)
        part = None if known is None else known.inventory.part(GPU)
        if known is None or part is None:
            raise Refused(f"node {placed.node} does not say which cards it has")
        wanted = wanted_of(placed.pod, held.allocation, read_resize(placed.pod.metadata.annotations[RESIZE]), part)
        if READS_RESIZE not in known.inventory.reads.crit:
            raise Refused(f"node {placed.node} can't change the limits of containers that run; upgrade partage there")
        return wanted

    def _in_the_way(self, placed: PlacedPod, wanted: Allocation, now: float) -> str | None:
        """Why it can't be granted now; None if it can."""
        before = placed.allocation
        if not grows(before, wanted):
            return None
        if (reason := self._quotas.against(placed.pod, wanted)) is not None:
            return str(reason)
        return no_room(self._cycle, placed, most(wanted, before), now)
