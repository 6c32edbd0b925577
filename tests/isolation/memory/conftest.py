"""Fixtures of the metering tests: a node with a container's broker, and a program in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolation.memory.stage import Place, Program, metered


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """512 MiB of the first of two small cards; none of the second."""
    with metered(tmp_path) as made:
        yield made


@pytest.fixture
def one(place: Place) -> Iterator[Program]:
    """A program with a context on the first card."""
    with place.program() as started:
        yield started
