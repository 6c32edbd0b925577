"""The node plugins in the advertiser's own process: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePosixPath

from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.plugins import load_all
from partage_plugins.hooks import NODE_GROUP
from partage_plugins.hooks import node as node_hooks
from partage_plugins.registry.finding import blocked_names, installed, tracing
from partage_plugins.sides.node import NodeSide
from partage_plugins.vocabulary import NodeName
from partage_plugins.vocabulary.node import NodeContext


def started_side(settings: AdvertiserSettings, *, wake: Callable[[], None]) -> NodeSide:
    """All plugins, begun; `BadConfiguration` with every fault: half a node's devices must not look like all of them."""
    registry = load_all(node_hooks, installed(NODE_GROUP), blocked=blocked_names(os.environ))
    side = NodeSide(registry, traced=tracing(os.environ))
    context = NodeContext(
        node=NodeName(settings.node_name),
        role="advertiser",
        root=PurePosixPath(settings.root),
        wake=wake,
        driver_root=PurePosixPath(settings.driver_root),
    )
    if faults := side.started(context):
        side.stopping()
        raise BadConfiguration(*(f"{fault}; mend it, remove it, or block it" for fault in faults))
    return side
