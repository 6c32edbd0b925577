"""`--check` reports all that would keep the advertiser from starting, beside a running one, and writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partage_base.daemon.errors import CONFIGURATION
from rig.patience import patience_s

pytestmark = pytest.mark.slow

DONE = "nothing is wrong with its configuration"


def checked(root: Path, *flags: str, **variables: str) -> tuple[int, str]:
    argv = [sys.executable, "-m", "partage_advertiser", "--root", str(root), "--check", *flags]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**os.environ, **variables}, timeout=patience_s(), check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.strip()


def test_nothing_is_wrong_where_only_the_driver_is_away(tmp_path: Path) -> None:
    assert checked(tmp_path, "--no-cluster") == (0, f"partage-advertiser: {DONE}")
    assert not any(tmp_path.iterdir())


def test_an_access_that_is_none_and_a_bad_setting_of_a_plugin_are_told(tmp_path: Path) -> None:
    code, told = checked(tmp_path, KUBECONFIG="/nowhere")
    assert (code, told.startswith("partage-advertiser: kubeconfig /nowhere: ")) == (CONFIGURATION, True)
    code, told = checked(tmp_path, "--no-cluster", PARTAGE_GPU_POOL="puddle")
    assert code == CONFIGURATION
    assert "PARTAGE_GPU_POOL" in told
