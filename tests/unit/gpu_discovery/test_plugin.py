"""The plugin discovers cards for the advertiser; crishim loads none of that code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from partage_gpu.discovery.settings import POOL
from partage_gpu.node import GpuNode
from partage_plugins.api import NodeName
from partage_plugins.api.node import NodeContext, NodeRole


def started(root: Path, role: NodeRole) -> GpuNode:
    plugin = GpuNode()
    plugin.partage_started(NodeContext(node=NodeName("n1"), role=role, root=PurePosixPath(root), wake=lambda: None))
    return plugin


def test_on_a_node_without_a_driver_the_plugin_finds_nothing_and_ends_well(tmp_path: Path) -> None:
    plugin = started(tmp_path, "advertiser")
    assert plugin.partage_discover(None) is None
    assert plugin.partage_samples() == []
    plugin.partage_stopping()


def test_a_mistake_in_the_settings_keeps_the_advertisers_half_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POOL, "mine")
    with pytest.raises(ValueError, match=f"{POOL} has 'mine'; allowed: auto"):
        started(tmp_path, "advertiser")
    started(tmp_path, "crishim").partage_stopping()


def test_crishim_loads_nothing_that_finds_cards(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import PurePosixPath
from partage_gpu.node import GpuNode
from partage_plugins.api.node import NodeContext
plugin = GpuNode()
plugin.partage_started(NodeContext(node="n1", role="crishim", root=PurePosixPath({str(tmp_path)!r}), wake=print))
assert plugin.partage_discover(None) is None and plugin.partage_samples() == []
plugin.partage_stopping()
print(*[name for name in sys.modules if "discovery" in name or "nvml" in name or name == "pynvml"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()
