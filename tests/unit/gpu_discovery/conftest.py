"""A node with two cards for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.gpu_discovery.making import MadeNode


@pytest.fixture
def node(tmp_path: Path) -> MadeNode:
    return MadeNode(tmp_path)
