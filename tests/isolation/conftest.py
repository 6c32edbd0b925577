"""A broker for each module of tests, with separate containers for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.isolated import Isolated, isolated
from support.simgpu import card


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    """Cards of 8 GiB with contexts of 64 MiB."""
    with isolated(cards=(card("t4", memory_mib=8192, reserved_mib=100, context_mib=64),) * 2) as place:
        yield place
