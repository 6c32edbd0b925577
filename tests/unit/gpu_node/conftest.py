"""A node for each test, without the machine's own settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_gpu.node.settings import ATTACH, CAPABILITIES
from unit.gpu_node.nodes import MadeNode


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ATTACH, CAPABILITIES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def node(tmp_path: Path) -> MadeNode:
    return MadeNode(tmp_path)
