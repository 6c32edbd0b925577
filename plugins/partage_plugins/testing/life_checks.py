"""Checks of a node plugin: it loads, starts, discovers devices, and stops without leaving anything behind."""

from __future__ import annotations

import re
import threading
from pathlib import PurePosixPath
from typing import Final

from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.node import DeviceUse, NodeRole
from partage_plugins.codecs.inventory import decode_inventory, encode_inventory
from partage_plugins.testing.check import Case, check, has_frozen_types, hold, owns_what_it_should, unchanged
from partage_plugins.testing.leftovers import no_process_is_left, no_thread_is_left
from partage_plugins.testing.node_stage import NodeStage

_ROLES: Final[tuple[NodeRole, ...]] = ("advertiser", "crishim")
_LABEL: Final = re.compile("[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_IN_USE: Final = DeviceUse(
    resource="example.com/device", device="device-0", namespace="default", pod="train", container="main"
)


@check("node")
def node_side_loads(case: Case) -> None:
    """It is imported, made and registered without a fault; all its hooks exist, are marked and take known arguments."""
    owns_what_it_should(NodeStage(case).registry, case.subject)


@check("node")
def starts_and_stops(case: Case) -> None:
    """It starts in either daemon, and stops on request."""
    for role in _ROLES:
        NodeStage(case).started(role).stopped()


@check("node")
def starts_again(case: Case) -> None:
    """After one instance has stopped, another starts on the same node, as after an update of the daemon."""
    root = PurePosixPath(case.root())
    for _ in range(2):
        NodeStage(case).started(root=root).stopped()


@check("node")
def stops_without_a_trace(case: Case) -> None:
    """After it has stopped, none of its processes and threads is left."""
    before = threading.enumerate()
    for role in _ROLES:
        stage = NodeStage(case).started(role)
        if role == "advertiser":
            stage.framework.discover(None)
            stage.framework.samples()
        stage.stopped()
    no_process_is_left()
    no_thread_is_left(before)


@check("node")
def samples_are_gauges(case: Case) -> None:
    """Its gauges have names and labels that are valid in metrics, and no two of them are the same."""
    gauges = NodeStage(case).started("advertiser").framework.samples()
    for gauge in gauges:
        for label in gauge.labels:
            hold(_LABEL.fullmatch(label), f"partage_samples gives {gauge.name} the label {label!r}")
    names = [(gauge.name, tuple(sorted(gauge.labels.items()))) for gauge in gauges]
    hold(len(set(names)) == len(names), f"partage_samples gives a gauge twice: {sorted(names)}")


@check("node")
def is_removed_at_any_time(case: Case) -> None:
    """It accepts removals of containers that it never saw, and of the same one twice."""
    stage = NodeStage(case).started()
    for key in ("0" * 32, "0" * 32, "f" * 32):
        stage.framework.removed(ContainerKey(key))


@check("node", "kind")
def discovers_the_same_twice(case: Case) -> None:
    """It discovers a value of the kind's type or None, and an equal one when nothing has changed."""
    stage = NodeStage(case).started("advertiser")
    for in_use in (None, (), (_IN_USE,)):
        with unchanged("partage_discover", "the devices in use", in_use):
            first, second = stage.framework.discover(in_use), stage.framework.discover(in_use)
        hold(first == second, f"partage_discover says {first!r:.200}, then {second!r:.200}, and nothing has changed")
        hold(set(first) <= {stage.kind.name}, f"partage_discover speaks of {sorted(first)}")


@check("node", "kind")
def discovers_what_can_be_written(case: Case) -> None:
    """What it discovers is the same when it is decoded from the inventory again."""
    stage = NodeStage(case).started("advertiser")
    written = Inventory(kinds=stage.framework.discover(()))
    read = decode_inventory(encode_inventory(written), stage.registry.kinds)
    hold(read == written, f"partage_discover says {written.kinds!r:.200}, read again as {read.kinds!r:.200}")


@check("node", "kind")
def declares_its_kind_on_the_node(case: Case) -> None:
    """Its three types are frozen, and it always declares the same kind."""
    kind = NodeStage(case).kind
    has_frozen_types(kind)
    hold(NodeStage(case).kind == kind, "partage_kind returns another kind the second time")
