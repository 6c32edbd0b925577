"""What tests of the broker share: a container of the place that all of a module have."""

from __future__ import annotations

import pytest

from support.isolated import Contained, Isolated

MIB = 1 << 20


@pytest.fixture
def container(place: Isolated) -> Contained:
    """1 GiB of the first card."""
    return place.prepare(1024 * MIB)
