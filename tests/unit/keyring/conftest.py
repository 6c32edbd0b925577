from __future__ import annotations

from pathlib import Path

import pytest

from partage_base.keyring import KeyFolders


@pytest.fixture
def folders(tmp_path: Path) -> KeyFolders:
    """The folders of a machine that has no keys yet."""
    return KeyFolders.at_root(tmp_path)
