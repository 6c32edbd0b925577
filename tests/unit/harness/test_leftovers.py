"""When a test run is killed, the programs that it started end too."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from support import leftovers
from support.extent import is_all


def test_what_a_killed_run_started_ends_and_nothing_else() -> None:
    sleep = ["sleep", "1000"]
    marked = {**os.environ, leftovers.MARK: "this-run"}
    with (
        subprocess.Popen(sleep) as run,
        subprocess.Popen(sleep, env=marked, start_new_session=True) as started,
        subprocess.Popen(sleep) as other,
    ):
        watcher = leftovers.watch(run.pid, "this-run")
        run.kill()
        assert started.wait() == -signal.SIGKILL
        assert os.waitpid(watcher, 0) == (watcher, 0)
        assert other.poll() is None
        other.kill()


@pytest.mark.slow
def test_a_program_is_found_from_the_moment_that_whoever_started_it_goes_on() -> None:
    """Popen returns before the kernel has set up the environment: without a wait, one in a hundred would be missed."""
    marked = {**os.environ, leftovers.MARK: "a-moment-ago"}
    for _ in range(500 if is_all() else 200):
        with subprocess.Popen(["sleep", "1000"], env=marked, start_new_session=True) as started:
            was_found = leftovers.kill_marked("a-moment-ago")
            started.kill()
        assert was_found
