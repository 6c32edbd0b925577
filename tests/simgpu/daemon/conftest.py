"""A small node for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import small_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with small_node(tmp_path) as node:
        yield node
