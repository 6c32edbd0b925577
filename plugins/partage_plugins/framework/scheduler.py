"""The scheduler's typed interface to its plugins.

An error of a plugin costs the pod that was being placed. A plugin that fails in take or give-back has lost count: it is
instantiated again and all nodes and bound allocations are replayed to it; if it fails again, the process must not go on
(`PluginBroken`). A hang ends the process (`registry.watchdog`). All methods are called from one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import ContainerName, Kind, NodeName, PluginName, Slot
from partage_plugins.api.pods import Budgeted, Pod, PodRequest, Resources
from partage_plugins.api.words import DialectWords
from partage_plugins.errors import DialectConflict, PartageError, PluginBroken, Refused
from partage_plugins.framework.batches import AllFit, check_fits, check_scores, combined_fits, combined_scores, nonsense
from partage_plugins.framework.requests import (
    check_annotations,
    check_asks,
    check_grants,
    check_resources,
    check_words,
    pod_request,
)
from partage_plugins.registry.calls import Activity, Call, bound
from partage_plugins.registry.registry import Registry


class Record(Protocol):
    """The state to replay to a renewed plugin; the caller keeps it, and updates it before each call.

    Derive from it; the default `rooms` is right if the CPU and memory of nodes are not tracked.
    """

    def nodes(self) -> Iterable[tuple[Slot, NodeName, Inventory]]:
        """All nodes that were added."""
        ...

    def allocations(self) -> Iterable[tuple[Slot, Allocation]]:
        """All allocations that are taken."""
        ...

    def rooms(self) -> Iterable[tuple[Slot, Resources, Resources]]:
        """CPU and memory of nodes, total and free; nodes that are left out count as unlimited."""
        return ()


class FrameworkSettings(Struct, frozen=True, kw_only=True):
    weights: Mapping[PluginName, float] = {}
    """Factors of the plugins' scores in the sum; 1 by default."""
    traced: bool = False
    """Whether each call is printed."""


class SchedulerFramework:
    """The calls that the scheduler makes to its plugins."""

    def __init__(
        self,
        registry: Registry,
        record: Record,
        *,
        settings: FrameworkSettings | None = None,
        activity: Activity | None = None,
        on_renewed: Callable[[PartageError], None] | None = None,
    ) -> None:
        """`on_renewed` is called with the reason whenever a plugin was renewed, for the log."""
        self.activity = activity or Activity()
        self._registry = registry
        self._record = record
        self._settings = settings or FrameworkSettings()
        self._on_renewed = on_renewed
        self._bind()

    def requests(self, pod: Pod) -> PodRequest:
        """The pod's request, with its names qualified by its namespace; refused in the same cases as `asked`."""
        asks = self._asks(pod)
        return pod_request(pod, {key: self._in_namespace(pod, key[1], ask) for key, ask in asks.items()})

    def asked(self, pod: Pod) -> PodRequest:
        """The pod's request as written.

        Refused if two dialects request one kind, or no plugin owns a requested kind.
        """
        return pod_request(pod, self._asks(pod))

    def _asks(self, pod: Pod) -> dict[tuple[ContainerName, Kind], object]:
        asks: dict[tuple[ContainerName, Kind], object] = {}
        dialects: dict[Kind, PluginName] = {}
        for call in self._calls["partage_requests"]:
            answer = call(pod)
            if answer is None:
                continue
            for name, kind, ask in check_asks(call, answer, pod, self._registry):
                other = dialects.setdefault(kind, call.plugin)
                if other != call.plugin:
                    raise DialectConflict(
                        f"this pod asks for {kind} in two dialects, {other} and {call.plugin}; use one of them"
                    )
                asks[name, kind] = ask
        return asks

    def _in_namespace(self, pod: Pod, kind_name: Kind, ask: object) -> object:
        kind = self._registry.kind(kind_name)
        if kind is None or kind.in_namespace is None:
            return ask
        if isinstance(ask, Budgeted):
            return replace(ask, ask=kind.in_namespace(ask.ask, pod.ref.namespace))
        return kind.in_namespace(ask, pod.ref.namespace)

    def resources(self) -> frozenset[str]:
        """Resource names that plugins handle, besides those below our own prefix; not in nodes' capacity."""
        return frozenset(name for call in self._calls["partage_resources"] for name in check_resources(call, call()))

    def words(self) -> tuple[DialectWords, ...]:
        """The dialect keys that any plugin knows, whether or not it reads them."""
        return tuple(each for call in self._calls["partage_words"] for each in check_words(call, call()))

    def shape(self, request: PodRequest) -> Hashable:
        """A value that is equal for requests which all plugins treat alike."""
        shape = tuple(_hashed(call, call(request)) for call in self._calls["partage_shape"])
        return (shape, request) if self._shapeless else shape

    def node_added(self, slot: Slot, node: NodeName, inventory: Inventory) -> None:
        """Adds a node in all plugins; a plugin that fails is renewed."""
        for call in self._calls["partage_node_added"]:
            self._counted(call, slot, node, inventory)

    def node_removed(self, slot: Slot) -> None:
        """Removes a node in all plugins; a plugin that fails is renewed."""
        for call in self._calls["partage_node_removed"]:
            self._counted(call, slot)

    def node_room(self, slot: Slot, total: Resources, free: Resources) -> None:
        """Passes a node's CPU and memory to all plugins; a plugin that fails is renewed."""
        for call in self._calls["partage_node_room"]:
            self._counted(call, slot, total, free)

    def fits(self, request: PodRequest, slots: Slots) -> AllFit:
        """Which nodes the request fits, and the reasons for the others."""
        verdicts: list[tuple[Call, Fits]] = []
        for call in self._calls["partage_fits"]:
            answer = call(request, slots)
            check_fits(call, answer, slots)
            verdicts.append((call, answer))
        return combined_fits(verdicts, slots)

    def scores(self, request: PodRequest, slots: Slots) -> Scores:
        """The score of each node: the weighted sum over plugins."""
        answers: list[tuple[Call, Scores, float]] = []
        for call in self._calls["partage_scores"]:
            answer = call(request, slots)
            check_scores(call, answer, slots)
            answers.append((call, answer, self._settings.weights.get(call.plugin, 1.0)))
        return combined_scores(answers, slots)

    def allocate(self, request: PodRequest, slot: Slot) -> dict[ContainerName, dict[Kind, Any]]:
        """The grants of every container, from the owner of each kind that the pod requests."""
        containers: dict[ContainerName, dict[Kind, Any]] = {container.name: {} for container in request.containers}
        for kind_name in sorted(request.kinds):
            call = self._owners_call("partage_allocate", kind_name)
            kind = self._registry.kind(kind_name)
            if call is None or kind is None:
                raise Refused(f"no plugin of this scheduler allocates {kind_name}; is its plugin installed?")
            for name, grants in check_grants(call, call(request, slot), request, kind).items():
                containers[name][kind_name] = grants
        return containers

    def take(self, slot: Slot, allocation: Allocation) -> None:
        """Counts an allocation that the record already contains; an owner that fails is renewed."""
        self._count("partage_take", slot, allocation)

    def give_back(self, slot: Slot, allocation: Allocation) -> None:
        """Undoes a take that the record no longer contains; an owner that fails is renewed."""
        self._count("partage_give_back", slot, allocation)

    def mirror(self, pod: Pod, allocation: Allocation, inventory: Inventory) -> Mapping[str, str]:
        """The pod's allocation, in the annotations of the systems whose dialects it uses."""
        found: dict[str, str] = {}
        for call in self._calls["partage_mirror"]:
            answer = call(pod, allocation, inventory)
            if answer is not None:
                found |= check_annotations(call, answer)
        return found

    def _bind(self) -> None:
        traced = self._settings.traced
        self._calls = {hook: bound(self._registry, hook, self.activity, traced=traced) for hook in self._registry.hooks}
        answering = {call.plugin for hook in ("partage_fits", "partage_scores") for call in self._calls[hook]}
        self._shapeless = not answering <= {call.plugin for call in self._calls["partage_shape"]}

    def _owners_call(self, hook: str, kind: Kind) -> Call | None:
        owner = self._registry.owner(kind)
        return next((call for call in self._calls[hook] if call.plugin == owner), None)

    def _count(self, hook: str, slot: Slot, allocation: Allocation) -> None:
        kinds = {kind for grants in allocation.containers.values() for kind in grants}
        for kind in sorted(kinds):
            call = self._owners_call(hook, kind)
            if call is not None:
                self._counted(call, slot, allocation)

    def _counted(self, call: Call, *arguments: object) -> None:
        """Makes a call that changes a plugin's state, which is worthless after a failure."""
        try:
            call(*arguments)
        except PartageError as error:
            self._renew(call.plugin, error)

    def _renew(self, plugin: PluginName, why: PartageError) -> None:
        try:
            self._registry.renew(plugin)
            self._bind()
            self._replay(plugin)
        except PartageError as error:
            raise PluginBroken(plugin, "replay", f"failed ({why}), was renewed, and failed again: {error}") from error
        if self._on_renewed is not None:
            self._on_renewed(why)

    def _replay(self, plugin: PluginName) -> None:
        def mine(hook: str) -> Call | None:
            return next((call for call in self._calls[hook] if call.plugin == plugin), None)

        added, room, take = mine("partage_node_added"), mine("partage_node_room"), mine("partage_take")
        if added is not None:
            for slot, node, inventory in self._record.nodes():
                added(slot, node, inventory)
        if room is not None:
            for slot, total, free in self._record.rooms():
                room(slot, total, free)
        if take is not None:
            owned = {kind.name for kind in self._registry.kinds if self._registry.owner(kind.name) == plugin}
            for slot, allocation in self._record.allocations():
                if any(owned & set(grants) for grants in allocation.containers.values()):
                    take(slot, allocation)


def _hashed(call: Call, shape: Hashable) -> Hashable:
    try:
        hash(shape)
    except TypeError:
        raise nonsense(call, f"returned {type(shape).__name__}, which cannot be hashed") from None
    return shape
