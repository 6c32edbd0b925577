"""What the fixtures give: a `SchedulerFramework` or a plugin host, with plugins given by path."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partage_plugins.api.allocation import Allocation
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import NodeName, Slot
from partage_plugins.codecs.inventory import decode_inventory
from partage_plugins.framework.scheduler import Record, SchedulerFramework
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.entry_points import from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.node_stage import RunningHost

SchedulerSides = Callable[..., SchedulerFramework]
"""Takes plugins as `module:Class` by name, then inventories as text: one node for each, from slot 0 on."""
PluginHosts = Callable[[Mapping[str, str]], RunningHost]
"""Takes plugins as `module:Class` by name; the host's root is the test's `tmp_path`."""


class _NodeRecord(Record):
    """The nodes to replay to a renewed plugin; authors' tests keep allocations themselves."""

    def __init__(self, inventories: tuple[Inventory, ...]) -> None:
        self._inventories = inventories

    def nodes(self) -> list[tuple[Slot, NodeName, Inventory]]:
        """One node for each inventory."""
        return [(Slot(slot), NodeName(f"node-{slot}"), each) for slot, each in enumerate(self._inventories)]

    def allocations(self) -> list[tuple[Slot, Allocation]]:
        return []


def scheduler_framework(plugins: Mapping[str, str], *inventories: str) -> SchedulerFramework:
    """The scheduler's interface to these plugins, with a node for each inventory."""
    registry = Registry(scheduler_hooks)
    for candidate in from_paths(plugins):
        registry.add(candidate)
    record = _NodeRecord(tuple(decode_inventory(text, registry.kinds) for text in inventories))
    framework = SchedulerFramework(registry, record)
    for slot, node, inventory in record.nodes():
        framework.node_added(slot, node, inventory)
    return framework
