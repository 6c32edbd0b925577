"""Hooks of the node side.

The advertiser calls discover and samples. crishim calls adjust and removed in a child process, one call at a time. A
plugin returns data and the host applies it. If a call hangs, the plugin's process is killed; the node is not affected.
"""

from __future__ import annotations

from collections.abc import Sequence

from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.node import DeviceUse, Gauge, NodeContext
from partage_plugins.hooks.both import partage_kind
from partage_plugins.hooks.markers import hookspec

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
    """Initialize the plugin: called once, before every other hook of this side except `partage_kind`.

    Args:
        context: the node's name, the hosting daemon's role, the root folder, and `wake()`.
    """


@hookspec
def partage_stopping() -> None:
    """Release devices and threads. Called at most once, and not at all when the process is killed."""


@hookspec
def partage_discover(in_use: Sequence[DeviceUse] | None) -> object | None:
    """Report the node's devices of the kind that this plugin owns; advertiser only.

    Called every 5 s and after `wake()`. Returning an equal value costs nothing: the inventory is written only when it
    changes.

    Args:
        in_use: devices that kubelet has allocated by itself, and those that other DRA drivers offer; None if kubelet
            could not be queried.

    Returns:
        The kind's part of the inventory, of the type that the kind declares; None if the node has no such devices.
    """
    raise NotImplementedError


@hookspec
def partage_samples() -> Sequence[Gauge]:
    """Return gauges for the advertiser's metrics.

    Returns:
        The current gauges; empty if there are none.
    """
    raise NotImplementedError


@hookspec
def partage_adjust(container: Container, granted: Granted) -> Adjustment | None:
    """Return the changes to a container before it is created; crishim only, for containers with a grant of any kind.

    May be called again for the same container key after a crash or a retry; the answer must be the same. Raise
    `Refused` to reject the container with that sentence. A call with a higher `gen` is for a container that is already
    running and whose amounts on the same devices change, or that is suspended or resumed (`granted.suspended`): only
    `enforces` of the result is used then.

    Args:
        container: the container as kubelet requested it.
        granted: its grants; yours are `granted.of(MY_KIND)`, with `granted.part(MY_KIND)` to look up the devices.

    Returns:
        The changes, with the promises that they enforce; None for no changes.
    """
    raise NotImplementedError


@hookspec
def partage_removed(key: ContainerKey) -> None:
    """Clean up after a container whose create failed or that the runtime no longer lists. Not in the advertiser.

    Called at least once for each key that was adjusted, and possibly for keys that this plugin never saw. When a claim
    is released, a container may still be using it.

    Args:
        key: the container's key, as in `partage_adjust`.

    Raises:
        Refused: the cleanup is not possible yet; the hook is called again later.
    """
