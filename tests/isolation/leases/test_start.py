"""A broker that could not write leases does not start, and says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from partage_isolation.library.pages import PAGE, install_page
from rig.patience import patience_s

pytestmark = pytest.mark.slow


def started(root: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "partage_isolation", f"--root={root}", "--library-folder=/lib", *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=patience_s(), check=False)


def test_without_its_writer_of_lines_it_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    ended = started(tmp_path, "--log-format=text")
    assert ended.returncode == 1
    (line,) = (line for line in ended.stderr.splitlines() if PAGE in line)
    assert "install it with `partage-broker --install-library`" in line
    assert "Traceback" not in ended.stderr


def test_a_check_tells_it_with_everything_else_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    lines = started(tmp_path, "--check").stderr.splitlines()
    assert any("no preload library is installed" in line for line in lines)
    assert any(PAGE in line for line in lines)
    install_page(tmp_path / "lib")
    assert not any(PAGE in line for line in started(tmp_path, "--check").stderr.splitlines())
