"""Hooks of the node side.

The advertiser calls discover and samples; crishim calls expected, adjust and removed, in a child process, one call at a
time. A plugin returns data and the host applies it. A call that hangs costs the plugin's process, never the node.
"""

from __future__ import annotations

from collections.abc import Sequence

from partage_plugins.hooks.both import partage_kind
from partage_plugins.hooks.markers import hookspec
from partage_plugins.vocabulary.containers import Adjustment, Container, Granted
from partage_plugins.vocabulary.names import ContainerKey
from partage_plugins.vocabulary.node import DeviceUse, Gauge, NodeContext

__all__ = [
    "partage_adjust",
    "partage_discover",
    "partage_kind",
    "partage_removed",
    "partage_samples",
    "partage_started",
    "partage_stopping",
]


@hookspec
def partage_started(context: NodeContext) -> None:
    """Begin: called once, before every other hook of this side but `partage_kind`.

    Args:
        context: the node's name, the hosting daemon's role, the root folder, and `wake()`.

    """


@hookspec
def partage_stopping() -> None:
    """End: let go of devices and threads. Called at most once; not called when the process is killed."""


@hookspec
def partage_discover(in_use: Sequence[DeviceUse] | None) -> object | None:
    """Say what exists of the kind that this plugin owns; advertiser only.

    Asked every 5 s and after `wake()`. Equal answers cost nothing: the inventory is written when it changes.

    Args:
        in_use: devices that kubelet gave away by itself, and those that other DRA drivers offer; None where kubelet
            could not be asked.

    Returns:
        The kind's part of the inventory, of the type that the kind declares; None: nothing here.

    """
    raise NotImplementedError


@hookspec
def partage_samples() -> Sequence[Gauge]:
    """Measure: gauges for the advertiser's metrics.

    Returns:
        The gauges as of now; empty if there are none.

    """
    raise NotImplementedError


@hookspec
def partage_adjust(container: Container, granted: Granted) -> Adjustment | None:
    """Say what must change in a container before it is created; crishim only, for containers with a grant of any kind.

    May be called again for the same container key, after a crash or a retry: give the same answer. Raise `Refused` to
    refuse the container with that sentence. With a higher `gen` the container runs, and other amounts of the same
    devices are to be in force: of the answer only what it enforces counts.

    Args:
        container: what kubelet asked for.
        granted: its grants; yours are `granted.of(MY_KIND)`, with `granted.part(MY_KIND)` to find the devices.

    Returns:
        The changes, with the promises that they enforce; None for none.

    """
    raise NotImplementedError


@hookspec
def partage_removed(key: ContainerKey) -> None:
    """Clean up after a container: its create failed, or the runtime no longer lists it. Not in the advertiser.

    Called at least once for each key that was adjusted, perhaps for keys that this plugin never saw. Where a claim is
    let go of, somebody may have it still.

    Args:
        key: the container's key, as in `partage_adjust`.

    Raises:
        Refused: not yet; it is called again later.

    """
