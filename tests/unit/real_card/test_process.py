"""A row's processes end with the row, and its output is bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HUNG = """
import os, sys, subprocess
from pathlib import Path
from real_card import process
process.reap_all_below()
kept = subprocess.Popen(["sleep", "1000"])
hang = "setsid sleep 1001 & setsid setsid sleep 1002 & echo $$; sleep 1003"
done = process.run(["sh", "-c", hang], os.environ, limit_s=0.5, folder=Path("."))
print(done.status, [pid for pid in process._children() if pid != kept.pid], kept.poll())
kept.kill()
"""
LOUD = """
import os
from pathlib import Path
from real_card import process
done = process.run(["sh", "-c", "yes | head -c 50000000; echo; echo end"], os.environ, limit_s=60, folder=Path("."))
print(done.status, len(done.said) <= 5 << 20, done.said.endswith("end\\n"))
"""
BY_AND_BY = """
import os
from pathlib import Path
from real_card import process
script = "i=0; while [ $i -lt 100 ]; do echo $i; sleep 0.002; i=$((i+1)); done"
done = process.run(["sh", "-c", script], os.environ, limit_s=60, folder=Path("."))
print(done.said.split() == [*map(str, range(100))])
"""


def said(program: str, folder: Path) -> str:
    """Runs in a process of its own, which becomes the reaper of all its descendants."""
    argv = [sys.executable, "-P", "-c", program]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_a_hanging_row_goes_with_all_it_started_and_nothing_else_does(tmp_path: Path) -> None:
    assert said(HUNG, tmp_path) == "None [] None"


def test_a_loud_row_keeps_its_end_alone(tmp_path: Path) -> None:
    assert said(LOUD, tmp_path) == "0 True True"


def test_all_that_a_row_says_line_by_line_is_kept(tmp_path: Path) -> None:
    assert said(BY_AND_BY, tmp_path) == "True"
