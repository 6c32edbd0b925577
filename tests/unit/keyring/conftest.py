from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from partage_base.keyring import KeyFolders


@pytest.fixture
def folders(tmp_path: Path) -> KeyFolders:
    """The folders of a machine without keys."""
    return KeyFolders.at_root(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of four pages, mounted for one test."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", place], check=True)
