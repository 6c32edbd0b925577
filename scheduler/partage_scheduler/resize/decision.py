"""Whether a pod on a node may have what it wishes for, on the same cards; booked as it is decided. Pure.

Growth is decided on as a new pod's request would be, by the same plugins, on its own node and cards: beside all others,
beside room that is kept for pods of no lower priority, and within the quotas of its namespace. What is given back needs
no room. Until it is certain whether the new allocation stands on the pod, of each amount the larger counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from partage_plugins.codecs.critical import RESIZE as READS_RESIZE
from partage_plugins.codecs.quantity import format_bytes
from partage_plugins.codecs.resize import read_resize, read_wait
from partage_plugins.errors import PartageError, PluginBroken, Refused
from partage_plugins.vocabulary import GPU, Allocation, CardId
from partage_plugins.vocabulary.card_memory import together
from partage_plugins.vocabulary.keys import RESIZE
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_scheduler.cluster.seats import Seat
from partage_scheduler.cycle import Cycle
from partage_scheduler.objects import ApiPod
from partage_scheduler.quotas import Quotas
from partage_scheduler.resize.wanted import as_request, grows, most, wanted_of


class Granted(Struct, frozen=True):
    """Booked, and to be written on the pod."""

    pod: ApiPod
    before: Allocation
    booked: Allocation
    wanted: Allocation


class Stays(Struct, frozen=True):
    """It keeps what it has."""

    pod: ApiPod
    why: str
    waits: bool
    """It is to be tried again; refused otherwise, until it wishes for something else."""


class Resizes:
    def __init__(self, cycle: Cycle, quotas: Quotas) -> None:
        self._cycle, self._cluster, self._quotas = cycle, cycle.cluster, quotas

    def decide(self, seat: Seat, now: float) -> Granted | Stays | None:
        """None where it has what it wishes for. Raises `PluginBroken` alone."""
        try:
            waits = read_wait(seat.pod.metadata.annotations)
            wanted = self._wanted(seat)
        except PartageError as error:
            return Stays(seat.pod, str(error), waits=False)
        before = seat.allocation
        if wanted.containers == before.containers:
            return None
        try:
            why = self._in_the_way(seat, wanted, now)
        except PluginBroken:
            raise
        except PartageError as error:
            why = str(error)
        if why is not None:
            return Stays(seat.pod, why, waits)
        booked = most(before, wanted)
        self._cluster.rebook(seat.pod.uid, before, booked)
        return Granted(seat.pod, before, booked, wanted)

    def _wanted(self, seat: Seat) -> Allocation:
        held = seat.held
        if held.unknown is not None or not (held.allocation.containers or seat.pod.spec.resource_claims):
            raise Refused("the pod has no allocation of partage that could be changed")
        known = self._cluster.fleet.get(seat.node)
        part = None if known is None else known.inventory.part(GPU)
        if known is None or part is None:
            raise Refused(f"node {seat.node} does not say which cards it has")
        wanted = wanted_of(seat.pod, held.allocation, read_resize(seat.pod.metadata.annotations[RESIZE]), part)
        if READS_RESIZE not in known.inventory.reads.crit:
            raise Refused(f"node {seat.node} can't change the limits of containers that run; upgrade partage there")
        return wanted

    def _in_the_way(self, seat: Seat, wanted: Allocation, now: float) -> str | None:
        """In a sentence; None where nothing is."""
        before = seat.allocation
        if not grows(before, wanted):
            return None
        if (reason := self._cluster.fleet.why_not(seat.node, now)) is not None:
            return str(reason)
        if (reason := self._quotas.against(seat.pod, wanted)) is not None:
            return str(reason)
        request, decider = as_request(self._cycle.request(seat.pod), most(wanted, before)), self._cycle.decider
        with self._cluster.kept.lifted(seat.pod):
            decider.give_back(seat.pod.uid)
            try:
                found = decider.decide_on(request, seat.node)
            finally:
                decider.take(before, seat.needs)
        if found is None:
            return next(self._lacking(seat, wanted), "the plugins of the scheduler refuse it")
        given = {name: {grant.card for grant in grants} for name, grants in found.allocation.of(GPU).items()}
        if given != {name: {grant.card for grant in grants} for name, grants in wanted.of(GPU).items()}:
            return "the plugins of the scheduler would give it other cards"
        return None

    def _lacking(self, seat: Seat, wanted: Allocation) -> Iterator[str]:
        """What is left beside the others on a card that has too little."""
        part = self._cluster.fleet[seat.node].inventory.part(GPU)
        others = [each for each in self._cluster.seats.on(seat.node) if each is not seat]
        for card_id in _cards(wanted):
            card = part.card(card_id) if part is not None else None
            if card is None or not card.is_allocatable:
                yield f"card {card_id} takes no new shares: it is {card.health if card else 'gone'}"
                continue
            used = [usage for each in others for usage in each.usages if usage.card == card_id]
            share = WHOLE_MILLI - sum(usage.share_milli for usage in used)
            memory = card.capacity.left(together([usage.memory for usage in used]), movable=False)
            left = f"{max(share, 0)} milli and {format_bytes(max(memory, 0))}"
            yield f"no room on card {card_id} of node {seat.node}: beside others {left} are left for this pod"


def _cards(allocation: Allocation) -> Iterator[CardId]:
    yield from dict.fromkeys(grant.card for grants in allocation.of(GPU).values() for grant in grants)
