from __future__ import annotations

from pathlib import Path

import pytest

from unit.crishim.rules.stage import Crishim, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A node with two cards."""
    return Stage(root=tmp_path)


@pytest.fixture
def crishim(stage: Stage) -> Crishim:
    """A crishim with default settings."""
    return stage.crishim()
