"""Hooks of the scheduler side.

One thread calls them, one call at a time. What they get is shared: never change it. They do no I/O and return quickly;
the host ends the process when one hangs. Hooks that speak of many nodes are called once for each decision, with all
nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.hooks.both import partage_kind
from partage_plugins.hooks.markers import hookspec
from partage_plugins.vocabulary.allocation import Allocation
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.names import ContainerName, Kind, NodeName, Slot
from partage_plugins.vocabulary.pods import Pod, PodRequest, Room
from partage_plugins.vocabulary.words import DialectWords

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
    """Read what a pod asks for, in this plugin's dialect.

    All plugins are asked. Two answers for one kind in one pod are refused, naming both dialects. Raise `Refused` or
    let a `DecodeError` pass to refuse the pod with that sentence.

    Args:
        pod: names, labels, annotations and the containers' resources as the user wrote them.

    Returns:
        Requests by container and kind, each of the request type that the kind's owner declared; None: not my dialect.

    """
    raise NotImplementedError


@hookspec
def partage_resources() -> Sequence[str]:
    """Name the resources by which pods ask in this plugin's dialect, so that no one looks for them on nodes.

    Asked once, when the scheduler starts. Those below `partage.dev/` need no naming.

    Returns:
        Names as in a container's limits, such as `fpga.example.com/boards`. No node may list them in its capacity.

    """
    raise NotImplementedError


@hookspec
def partage_words() -> Sequence[DialectWords]:
    """Name the words of this plugin's dialect, read or not, so that no pod that uses them in vain runs in silence.

    Asked once, when the scheduler starts, and by `partage audit` and `partage translate`.

    Returns:
        For each system its words, where pods say them, what else it owns, and what to do about a pod that is not read.

    """
    raise NotImplementedError


@hookspec
def partage_shape(request: PodRequest) -> Hashable:
    """Give a value that is equal for requests which this plugin treats alike.

    Only the core caches fits and scores, by the shapes of all plugins together. Change the shape when a global
    parameter of your own changes. A plugin that answers fits or scores without this hook is asked again for every pod.

    Args:
        request: all of a pod's requests.

    Returns:
        Anything hashable, cheap to make: a tuple of numbers.

    """
    raise NotImplementedError


@hookspec
def partage_node_added(slot: Slot, node: NodeName, inventory: Inventory) -> None:
    """Learn of a node, or of a node's new inventory.

    For a changed inventory the host calls `partage_node_removed` first and replays the node's allocations after.

    Args:
        slot: the node's number from now on; small, so arrays may be indexed by it.
        node: the node's name.
        inventory: its devices; your part is `inventory.part(MY_KIND)`, None where the node has none.

    """


@hookspec
def partage_node_removed(slot: Slot) -> None:
    """Forget a node and all that was taken on it.

    Args:
        slot: the node's number; it may be given to another node afterwards.

    """


@hookspec
def partage_node_room(slot: Slot, total: Room, free: Room) -> None:
    """Learn how much CPU and main memory a node has, and has free.

    Called after `partage_node_added` and whenever it changes, before or after takes. Not told: treat as unlimited. The
    host itself checks that a pod fits by CPU and memory; a plugin only prefers by them.

    Args:
        slot: the node.
        total: what its pods can have.
        free: what is left of it.

    """


@hookspec
def partage_fits(request: PodRequest, slots: Slots) -> Fits:
    """Say on which of these nodes the whole request fits, all its containers together.

    All plugins must agree. Answer True for what is not your business.

    Args:
        request: all of a pod's requests.
        slots: int32 array of nodes.

    Returns:
        A bool array, uint8 reason codes where it is False (or a function that gives them, called at once or never),
        and the table of reasons: texts, or each a `Reason` that says whether a pod that leaves may take it away.

    """
    raise NotImplementedError


@hookspec
def partage_scores(request: PodRequest, slots: Slots) -> Scores:
    """Say how good each of these nodes is; higher is better.

    The host sums the plugins' scores.

    Args:
        request: all of a pod's requests.
        slots: int32 array of nodes on which the request fits.

    Returns:
        A float32 array of finite numbers, usually from 0 to 1.

    """
    raise NotImplementedError


@hookspec
def partage_allocate(request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[object]]:
    """Choose devices of the kind that this plugin owns; owners only, and only if the pod asks for the kind.

    Change no state: the host calls `partage_take` with what it writes.

    Args:
        request: all of a pod's requests.
        slot: the node that was chosen.

    Returns:
        Grants by container, of the kind's grant type, for each container that asks for the kind. Raise `Refused` where
        it no longer fits.

    """
    raise NotImplementedError


@hookspec
def partage_take(slot: Slot, allocation: Allocation) -> None:
    """Count an allocation on a node; owners of a kind in it only.

    After a start, a reset or a new inventory the host replays nodes and bound allocations. A plugin that raises here
    is renewed and replayed.

    Args:
        slot: the node.
        allocation: the pod's whole allocation; yours is `allocation.of(MY_KIND)`.

    """


@hookspec
def partage_give_back(slot: Slot, allocation: Allocation) -> None:
    """Undo `partage_take` of the same allocation; owners of a kind in it only.

    Args:
        slot: the node.
        allocation: what was taken before.

    """


@hookspec
def partage_mirror(pod: Pod, allocation: Allocation, inventory: Inventory) -> Mapping[str, str] | None:
    """Say what a pod was given in the annotations of another system, for programs that read those.

    Asked only where the operator wants it, before the pod is bound. They are written with the binding, and nothing of
    ours reads them.

    Args:
        pod: as your dialect reads it.
        allocation: what it was given; `allocation.given(container, kind)` is what one container may use.
        inventory: the node's.

    Returns:
        Annotations, none of them below our own prefixes; None: not my dialect.

    """
    raise NotImplementedError
