"""The cheap clock that keeps launches cheap never lags: an idle card is never taken for busy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # it compiles

SOURCES = Path(__file__).parents[3] / "simgpu/native"


def test_it_is_never_before_the_real_clock(tmp_path: Path) -> None:
    program = tmp_path / "ticks"
    sources = [Path(__file__).with_name("ticks.c"), SOURCES / "cuda/ticks.c"]
    options = ["-O2", "-std=gnu11", "-pthread", f"-I{SOURCES / 'common'}"]
    subprocess.run(["cc", *options, "-o", program, *sources], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    too_little, said, usable = map(int, done.stdout.split())
    assert too_little == 0
    assert (said > 0) is bool(usable)
