"""Fixtures of the NVML tests: running nodes, and programs on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import Program, program
from support.simgpu import card, simulated_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    """Two H100 and a card without ECC, NVLink or MIG."""
    with simulated_node(tmp_path, cards=("h100", "h100", "rtx-4090")) as made:
        yield made


@pytest.fixture
def mig_node(tmp_path: Path) -> Iterator[SimulatedNode]:
    """An H100 with two instances."""
    with simulated_node(tmp_path, cards=(card("h100", mig=("1g.10gb", "3g.40gb")),)) as made:
        yield made


@pytest.fixture
def nvml(node: SimulatedNode) -> Iterator[Program]:
    with program(node) as started:
        yield started
