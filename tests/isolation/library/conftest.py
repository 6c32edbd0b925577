"""The library as in containers, a driver that does next to nothing, and the programs, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from isolation.library.stage import Stage, made


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return made(tmp_path_factory.mktemp("loading"))


@pytest.fixture
def beside(stage: Stage, tmp_path: Path) -> Stage:
    """The same library, and the driver in the folder beside it, where a mount may put one."""
    return stage.moved(tmp_path / "partage")
