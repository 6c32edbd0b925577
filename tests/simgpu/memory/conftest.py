"""Fixtures of the memory tests: a running node, and a program on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import Program, program
from support.simgpu import card, simulated_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    """Two small cards: 1 GiB, of which a context takes 64 MiB."""
    small = card("t4", memory_mib=1024, reserved_mib=0, context_mib=64, graph_node_kib=0)
    with simulated_node(tmp_path, cards=(small, small)) as made:
        yield made


@pytest.fixture
def one(node: SimulatedNode) -> Iterator[Program]:
    """A program with a context on the first card."""
    with program(node) as started:
        yield started
