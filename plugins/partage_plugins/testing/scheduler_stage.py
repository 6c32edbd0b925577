"""One instance of a scheduler plugin behind the real `SchedulerFramework`, with its nodes and allocations."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from partage_plugins.answers import Slots
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import NodeName, PluginName, Slot
from partage_plugins.api.pods import Pod, PodRequest, Resources
from partage_plugins.codecs.allocation import decode_allocation, encode_allocation
from partage_plugins.codecs.inventory import decode_inventory
from partage_plugins.errors import Refused
from partage_plugins.framework.batches import AllFit
from partage_plugins.framework.scheduler import Record, SchedulerFramework
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.calls import Call, bound
from partage_plugins.testing import examples
from partage_plugins.testing.check import Broken, Case, hold, loaded, owned
from partage_plugins.testing.neighbours import scheduler_paths

BARE = Inventory(kinds={})
"""A node without any device."""


class Answers(NamedTuple):
    """A plugin's results for one request."""

    fits: tuple[str, ...]
    """The reason for each node, empty where the request fits."""
    scores: tuple[float, ...]
    """For each node on which it fits."""
    grants: tuple[bytes, ...] = ()
    """For each node on which it fits, as JSON; for owners only."""

    def difference(self, other: Answers) -> str:
        """Names the fields that differ, as in `fits and scores`; empty if none does."""
        pairs = zip(self._fields, self, other, strict=True)
        return " and ".join(name for name, mine, theirs in pairs if mine != theirs)


class SchedulerStage(Record):
    """A new instance of the subject, loaded beside its neighbours."""

    def __init__(self, case: Case) -> None:
        self.subject = case.subject
        self.registry = loaded(case, scheduler_hooks, scheduler_paths(case.subject))
        self.framework = SchedulerFramework(self.registry, self, activity=case.activity)
        self.inventories = tuple(decode_inventory(text, self.registry.kinds) for text in case.subject.inventories)
        self._activity = case.activity
        self._shape = bound(self.registry, "partage_shape", case.activity, traced=False)
        self._nodes: dict[Slot, tuple[NodeName, Inventory]] = {}
        self._rooms: dict[Slot, tuple[Resources, Resources]] = {}
        self._taken: list[tuple[Slot, Allocation]] = []

    @property
    def kind(self) -> AnyKind:
        """The kind that the subject owns."""
        return owned(self.registry, self.subject)

    @property
    def has_shape(self) -> bool:
        """Whether the subject implements `partage_shape`."""
        return any(call.plugin == self.subject.name for call in self._shape)

    @property
    def slots(self) -> Slots:
        """All nodes; read-only, as the arrays that the host passes are shared."""
        return read_only(self._nodes)

    def nodes(self) -> list[tuple[Slot, NodeName, Inventory]]:
        """The nodes to replay to a new instance."""
        return [(slot, node, inventory) for slot, (node, inventory) in self._nodes.items()]

    def allocations(self) -> list[tuple[Slot, Allocation]]:
        """The allocations to replay."""
        return list(self._taken)

    def rooms(self) -> list[tuple[Slot, Resources, Resources]]:
        """The nodes' CPU and memory to replay."""
        return [(slot, total, free) for slot, (total, free) in self._rooms.items()]

    def told(self, inventories: Sequence[Inventory] = ()) -> SchedulerStage:
        """Adds a node for each inventory, and returns itself."""
        for number, inventory in enumerate(inventories or self.inventories):
            self.node_added(Slot(number), inventory)
        return self

    def node_added(self, slot: Slot, inventory: Inventory) -> None:
        """Adds a node, named after its slot."""
        node = NodeName(f"node-{slot}")
        self._nodes[slot] = node, inventory
        self.framework.node_added(slot, node, inventory)

    def node_removed(self, slot: Slot) -> None:
        """Removes a node and its allocations."""
        del self._nodes[slot]
        self._rooms.pop(slot, None)
        self._taken = [(taken, allocation) for taken, allocation in self._taken if taken != slot]
        self.framework.node_removed(slot)

    def node_room(self, slot: Slot, total: Resources, free: Resources) -> None:
        """Sets a node's total and free CPU and memory."""
        self._rooms[slot] = total, free
        self.framework.node_room(slot, total, free)

    def shape(self, request: PodRequest) -> Hashable:
        """The subject's own shape, or the request itself if it has none."""
        for call in self._shape:
            if call.plugin == self.subject.name:
                self.framework.shape(request)  # checks that it is hashable
                shape: Hashable = call(request)
                return shape
        return request

    def promised(self, grant: object, part: object) -> object:
        """A grant's promises by the subject's kind, called like a hook; unchecked."""
        call = Call(PluginName(self.subject.name), "promises", self.kind.promises, self._activity)
        answer: object = call(grant, part)
        return answer

    def verdicts(self, request: PodRequest, slots: Slots | None = None) -> tuple[str, ...]:
        """The reason for each node, empty where the request fits."""
        return spelt_out(self.framework.fits(request, self.slots if slots is None else slots))

    def fitting(self, request: PodRequest) -> list[Slot]:
        """The nodes on which the request fits."""
        return [Slot(slot) for slot in self.slots[self.framework.fits(request, self.slots).fits].tolist()]

    def scores(self, request: PodRequest, slots: Iterable[int]) -> tuple[float, ...]:
        """The scores of these nodes."""
        return tuple(self.framework.scores(request, read_only(slots)).tolist())

    def answers(self, request: PodRequest) -> Answers:
        """All of the subject's results for a request."""
        fitting = self.fitting(request)
        owned = self.subject.kind is not None and self.subject.kind in request.kinds
        grants = tuple(msgspec.json.encode(self.allocation(request, slot).containers) for slot in fitting if owned)
        return Answers(self.verdicts(request), self.scores(request, fitting), grants)

    def allocation(self, request: PodRequest, slot: Slot) -> Allocation:
        """The subject's grants as decoded from the pod; raises `Broken` if they are refused where they fit."""
        try:
            grants = self.framework.allocate(request, slot)
        except Refused as refusal:
            raise Broken(f"partage_fits says yes for {self._nodes[slot][0]}, partage_allocate no: {refusal}") from None
        node = self._nodes[slot][0]
        written = Allocation(gen=1, pod=request.pod.uid, node=node, containers=grants, uses=request.uses)
        read = decode_allocation(encode_allocation(written), self.registry.kinds)
        hold(read == written, f"partage_allocate gave {grants!r:.200}, which is read from the pod as {read.containers}")
        return read

    def take(self, slot: Slot, allocation: Allocation) -> None:
        self._taken.append((slot, allocation))
        self.framework.take(slot, allocation)

    def give_back(self, slot: Slot, allocation: Allocation) -> None:
        self._taken.remove((slot, allocation))
        self.framework.give_back(slot, allocation)

    def placed(self, pod: Pod) -> tuple[Slot, Allocation] | None:
        """Takes a pod's allocation on the first node on which it fits; None if there is none."""
        request = self.framework.requests(pod)
        for slot in self.fitting(request)[:1]:
            allocation = self.allocation(request, slot)
            self.take(slot, allocation)
            return slot, allocation
        return None

    def filled(self, pods: Iterable[Pod], at_most: int) -> Iterator[tuple[Slot, Allocation]]:
        """Places pods in turn until none of them fits or `at_most` are placed; yields each node and allocation."""
        waiting, number = list(pods), 0
        while waiting:
            for pod in tuple(waiting):
                if number == at_most:
                    return
                placed = self.placed(examples.like(pod, number))
                if placed is None:
                    waiting.remove(pod)
                else:
                    number += 1
                    yield placed


def read_only(slots: Iterable[int]) -> Slots:
    """A read-only array."""
    return np.frombuffer(np.array(list(slots), dtype=np.int32).tobytes(), dtype=np.int32)


def spelt_out(verdict: AllFit) -> tuple[str, ...]:
    """The reason for each node, empty where the request fits."""
    codes, reasons = verdict.reasons()
    pairs = zip(verdict.fits.tolist(), codes.tolist(), strict=True)
    return tuple("" if fits else str(reasons[code]) for fits, code in pairs)
