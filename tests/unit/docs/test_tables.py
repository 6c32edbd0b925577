"""The tables of settings and metrics in docs are those that the code declares."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = "".join(page.read_text() for page in sorted((ROOT / "docs").rglob("*.md")))


def test_every_table_is_current() -> None:
    command = [sys.executable, str(ROOT / "tools/tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_every_daemon_has_its_tables() -> None:
    metrics = [f"metrics {daemon}" for daemon in ("advertiser", "broker", "crishim", "scheduler", "sharepods")]
    marks = ["settings common", "settings scheduler", "settings crishim", "settings broker", *metrics]
    assert [mark for mark in marks if f"<!-- {mark} -->" not in DOCS] == []
