"""Fixtures of the gating tests: a node with a container's broker, and a program in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolation.gates.stage import Place, Program, gated


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A container with memory of one card, whose gate is closed."""
    with gated(tmp_path) as made:
        yield made


@pytest.fixture
def one(place: Place) -> Iterator[Program]:
    """A program with a context on it."""
    with place.program() as started:
        yield started
