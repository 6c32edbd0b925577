"""A machine without an API server: the file is kept current, and nothing else is queried or written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from rig.patience import patience_s

ENV: Mapping[str, str] = {**os.environ, "PARTAGE_PLUGINS_BLOCK": "gpu,isolation", "KUBECONFIG": "/nowhere"}


def advertiser(root: Path, *words: str) -> list[str]:
    """The messages about what it writes or withdraws."""
    argv = [sys.executable, "-m", "partage_advertiser", "--no-cluster", "--root", str(root), *words]
    done = subprocess.run(argv, capture_output=True, text=True, env=ENV, timeout=patience_s(), check=False)
    assert done.returncode == 0, done.stderr
    return [line.rpartition(": ")[2] for line in done.stderr.splitlines() if line.startswith(str(root))]


@pytest.mark.slow
def test_only_the_file_is_told_and_taken_back(tmp_path: Path) -> None:
    file = tmp_path / INVENTORY_FILE
    assert advertiser(tmp_path, "--once", "--dry-run") == ["would be written"]
    assert not file.exists()
    assert advertiser(tmp_path, "--once") == ["written"]
    assert not decode_inventory(file.read_bytes(), ()).kinds
    assert advertiser(tmp_path, "prune") == ["removed"]
    assert not file.exists()


def test_the_daemon_keeps_the_file_true(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "partage_advertiser", "--no-cluster", "--root", str(tmp_path)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=ENV) as daemon:
        assert daemon.stderr is not None
        try:
            assert any('"ready"' in line for line in daemon.stderr)
            assert (tmp_path / INVENTORY_FILE).exists()
        finally:
            daemon.kill()
