"""Hooks of the scheduler side.

One thread calls them, one call at a time. Arguments are shared with other plugins: never modify them. Hooks do no I/O
and return quickly; the host ends the process when one hangs. Hooks that take many nodes are called once for each
decision, with all nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import ContainerName, Kind, NodeName, Slot
from partage_plugins.api.pods import Pod, PodRequest, Resources
from partage_plugins.api.words import DialectWords
from partage_plugins.hooks.both import partage_kind
from partage_plugins.hooks.markers import hookspec

__all__ = [
    "partage_allocate",
    "partage_fits",
    "partage_give_back",
    "partage_kind",
    "partage_mirror",
    "partage_node_added",
    "partage_node_removed",
    "partage_node_room",
    "partage_requests",
    "partage_resources",
    "partage_scores",
    "partage_shape",
    "partage_take",
    "partage_words",
]


@hookspec
def partage_requests(pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
    """Parse what a pod requests, in this plugin's dialect.

    Called on all plugins. If two of them return a request for the same kind, the pod is refused and both dialects are
    named. To refuse the pod with a sentence of your own, raise `Refused` or let a `DecodeError` propagate.

    Args:
        pod: names, labels, annotations and the containers' resources as the user wrote them.

    Returns:
        Requests by container and kind, each of the request type that the kind's owner declared; None if the pod does
        not use this dialect.
    """
    raise NotImplementedError


@hookspec
def partage_resources() -> Sequence[str]:
    """Return the resource names by which pods make requests in this plugin's dialect; nodes need not have them.

    Called once, when the scheduler starts. Resources below `partage.dev/` need not be listed.

    Returns:
        Names as in a container's limits, such as `fpga.example.com/boards`. No node may list them in its capacity.
    """
    raise NotImplementedError


@hookspec
def partage_words() -> Sequence[DialectWords]:
    """Return the keys of this plugin's dialect, enabled or not, so that a pod whose keys have no effect gets an Event.

    Called once, when the scheduler starts, and by `partage audit` and `partage translate`.

    Returns:
        For each system: its keys, where pods write them, which other prefixes it owns, and what to do about a pod whose
        request is not read.
    """
    raise NotImplementedError


@hookspec
def partage_shape(request: PodRequest) -> Hashable:
    """Return a value that is equal for requests which this plugin treats alike.

    The core alone caches fits and scores, by the shapes of all plugins together. Change the shape when a global
    parameter of your own changes. A plugin that implements fits or scores without this hook is called for every pod.

    Args:
        request: all of a pod's requests.

    Returns:
        Any hashable value that is cheap to make, such as a tuple of numbers.
    """
    raise NotImplementedError


@hookspec
def partage_node_added(slot: Slot, node: NodeName, inventory: Inventory) -> None:
    """Add a node, or a node's new inventory.

    For a changed inventory the host calls `partage_node_removed` first and replays the node's allocations afterwards.

    Args:
        slot: the node's number from now on; slots are small, so arrays can be indexed by them.
        node: the node's name.
        inventory: its devices; your part is `inventory.part(MY_KIND)`, None if the node has none.
    """


@hookspec
def partage_node_removed(slot: Slot) -> None:
    """Forget a node and everything that was taken on it.

    Args:
        slot: the node's number, which may be reused for another node afterwards.
    """


@hookspec
def partage_node_room(slot: Slot, total: Resources, free: Resources) -> None:
    """Update a node's allocatable and free CPU and main memory.

    Called after `partage_node_added` and after every change, before or after takes. Until the first call, treat both as
    unlimited. The host itself checks that a pod fits by CPU and memory; a plugin only uses them in its preferences.

    Args:
        slot: the node.
        total: what the node's pods can use in all.
        free: the part of it that is free.
    """


@hookspec
def partage_fits(request: PodRequest, slots: Slots) -> Fits:
    """Determine on which of these nodes the whole request fits, all its containers together.

    A node fits only if all plugins return True for it. Return True where your plugin has no constraint.

    Args:
        request: all of a pod's requests.
        slots: int32 array of nodes.

    Returns:
        A bool array, uint8 reason codes where it is False (or a function that returns them, called at once or never),
        and the table of reasons: texts, or a `Reason` that states whether the end of another pod may remove it.
    """
    raise NotImplementedError


@hookspec
def partage_scores(request: PodRequest, slots: Slots) -> Scores:
    """Score each of these nodes; higher is better.

    The host adds up the plugins' scores, each multiplied by its weight.

    Args:
        request: all of a pod's requests.
        slots: int32 array of nodes on which the request fits.

    Returns:
        A float32 array of finite numbers, usually from 0 to 1.
    """
    raise NotImplementedError


@hookspec
def partage_allocate(request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[object]]:
    """Choose devices of the kind that this plugin owns; owners only, and only if the pod requests the kind.

    Change no state: the host calls `partage_take` with what it writes.

    Args:
        request: all of a pod's requests.
        slot: the node that was chosen.

    Returns:
        Grants by container, of the kind's grant type, for each container that requests the kind. Raise `Refused` if the
        request no longer fits.
    """
    raise NotImplementedError


@hookspec
def partage_take(slot: Slot, allocation: Allocation) -> None:
    """Count an allocation on a node; only for owners of a kind in it.

    After a start, a reset or a new inventory the host replays nodes and bound allocations. A plugin that raises here is
    instantiated again and everything is replayed to it.

    Args:
        slot: the node.
        allocation: the pod's whole allocation; yours is `allocation.of(MY_KIND)`.
    """


@hookspec
def partage_give_back(slot: Slot, allocation: Allocation) -> None:
    """Undo `partage_take` of the same allocation; only for owners of a kind in it.

    Args:
        slot: the node.
        allocation: the allocation that was taken before.
    """


@hookspec
def partage_mirror(pod: Pod, allocation: Allocation, inventory: Inventory) -> Mapping[str, str] | None:
    """Express a pod's allocation in the annotations of another system, for programs that read those.

    Called only if the operator enabled it, before the pod is bound. The annotations are written with the binding;
    partage itself never reads them.

    Args:
        pod: as your dialect reads it.
        allocation: the pod's allocation; `allocation.given(container, kind)` is what one container may use.
        inventory: the node's.

    Returns:
        Annotations, none of them below our own prefixes; None if the pod does not use this dialect.
    """
    raise NotImplementedError
