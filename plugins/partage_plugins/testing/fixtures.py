"""pytest fixtures for authors' own tests: the real `SchedulerFramework` and plugin host, with plugins given by path.

Use them with `pytest_plugins = ["partage_plugins.testing.fixtures"]` in `conftest.py`, or import them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from partage_plugins.api.allocation import Allocation
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import NodeName, Slot
from partage_plugins.codecs.inventory import decode_inventory
from partage_plugins.framework.scheduler import Record, SchedulerFramework
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.host import HostSettings
from partage_plugins.registry.entry_points import from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.node_stage import RunningHost, python_path

try:
    import pytest
except ImportError:
    raise ImportError("partage_plugins.testing.fixtures needs pytest: pip install pytest") from None

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


@pytest.fixture
def scheduler_side() -> SchedulerSides:
    """Creates a `SchedulerFramework`: `scheduler_side({"fpga": "my.scheduler:Fpga"}, examples.inventory(…))`."""

    def make(plugins: Mapping[str, str], *inventories: str) -> SchedulerFramework:
        registry = Registry(scheduler_hooks)
        for candidate in from_paths(plugins):
            registry.add(candidate)
        record = _NodeRecord(tuple(decode_inventory(text, registry.kinds) for text in inventories))
        framework = SchedulerFramework(registry, record)
        for slot, node, inventory in record.nodes():
            framework.node_added(slot, node, inventory)
        return framework

    return make


@pytest.fixture
def plugin_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginHosts]:
    """Creates running plugin hosts, and stops them after the test: `plugin_host({"fpga": "my.node:Fpga"})`."""
    monkeypatch.setenv("PYTHONPATH", python_path())
    with ExitStack() as stack:

        def make(plugins: Mapping[str, str]) -> RunningHost:
            settings = HostSettings(node=NodeName("node-0"), root=str(tmp_path), paths=dict(plugins))
            return stack.enter_context(RunningHost(settings))

        yield make
