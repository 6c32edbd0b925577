"""Fixtures of the broker's tests: a container on the broker that all tests of a module share."""

from __future__ import annotations

import pytest

from support.isolated import Contained, Isolated

MIB = 1 << 20


@pytest.fixture
def container(place: Isolated) -> Contained:
    """1 GiB of the first card."""
    return place.prepare(1024 * MIB)
