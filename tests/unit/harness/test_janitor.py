"""A run of tests that is killed or interrupted leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite.pool import ROOT

pytestmark = pytest.mark.slow

RUN = """
import subprocess, sys, time
from suite.janitor import run_folder
with run_folder() as (folder, remove):
    (folder / "written").touch()
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print(folder, child.pid, flush=True)
    match sys.argv[1]:
        case "ends": child.kill(); remove()
        case "fails": child.kill()
        case "is interrupted": raise KeyboardInterrupt
        case _: time.sleep(1000)
"""


def started(tmp_path: Path, how: str) -> tuple[subprocess.Popen[str], Path, int]:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "tests")}
    argv = (sys.executable, "-c", RUN, how)
    run = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    assert run.stdout is not None
    folder, child = run.stdout.readline().split()
    return run, Path(folder), int(child)


@pytest.mark.parametrize("how", ["is killed", "is interrupted"])
def test_what_it_started_and_wrote_goes(tmp_path: Path, how: str) -> None:
    run, folder, child = started(tmp_path, how)
    with run:
        if how == "is killed":
            run.kill()
        until_gone = Path(f"/proc/{child}/stat")
        while folder.exists() or (until_gone.exists() and " Z " not in until_gone.read_text()):
            time.sleep(0.01)


def test_one_that_fails_keeps_its_folder_for_a_look_until_the_next_run(tmp_path: Path) -> None:
    failed, kept, _ = started(tmp_path, "fails")
    failed.communicate()
    assert (kept / "written").exists()
    good, folder, _ = started(tmp_path, "ends")
    good.communicate()
    assert not kept.exists()
    assert not folder.exists()
