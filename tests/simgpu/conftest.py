"""A node with two linked cards, and programs on it, for tests without other needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simgpu.cuda.programs import Programs
from support.simgpu import SimulatedNode, simulated_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with simulated_node(tmp_path, cards=("h100", "h100")) as node:
        yield node


@pytest.fixture
def programs(node: SimulatedNode) -> Programs:
    return Programs(node)
