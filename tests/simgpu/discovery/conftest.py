"""A node to discover, and its driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.discovery.asked import Asked, asked
from support.simgpu import simulated_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    """Two H100 and a card without ECC, NVLink or MIG."""
    with simulated_node(tmp_path, cards=("h100", "h100", "rtx-4090")) as made:
        yield made


@pytest.fixture
def driver(node: SimulatedNode) -> Iterator[Asked]:
    with asked(node.root) as made:
        yield made
