"""The broker's thread has priority over ordinary programs, and never for long."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rig.patience import patience_s

_BEGIN = """
import os, resource, threading
from partage_isolation.urgency import go_first
told = []
why = go_first(lambda: told.append(True))
"""


def run(program: str, *before: str, begin: str = _BEGIN) -> str:
    argv = [*before, sys.executable, "-c", begin + program]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=patience_s()).stdout.strip()


@pytest.fixture(scope="module")
def right() -> None:
    """Asks the kernel instead of `go_first`, so that these tests fail if `go_first` is wrong."""
    argv = [sys.executable, "-c", "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"]
    if subprocess.run(argv, capture_output=True, timeout=patience_s(), check=False).returncode:
        pytest.skip("the kernel gives nobody a real-time priority here")


@pytest.mark.usefixtures("right")
@pytest.mark.slow
def test_all_its_threads_are_of_round_robin_and_a_child_is_not() -> None:
    """Otherwise the thread that answers would wait for one that holds the interpreter, and that one for a CPU."""
    program = """
import os, subprocess, sys, threading
from partage_isolation.urgency import go_first, goes_as_others
gate = threading.Event()
before = threading.Thread(target=gate.wait)
before.start()
go_first(lambda: None)
of = [os.sched_getscheduler(0), os.sched_getscheduler(before.native_id)]
gate.set()
after = threading.Thread(target=lambda: of.append(os.sched_getscheduler(0)))
after.start(); after.join()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
goes_as_others(child.pid)
of.append(os.sched_getscheduler(child.pid))
child.communicate(b"\\n")
goes_as_others(child.pid)
print(*of)
"""
    assert run(program, begin="") == f"{os.SCHED_RR} {os.SCHED_RR} {os.SCHED_RR} {os.SCHED_OTHER}"


@pytest.mark.usefixtures("right")
@pytest.mark.slow
def test_who_computes_without_a_pause_is_an_ordinary_thread_again_and_says_so() -> None:
    program = """
while not told:
    pass
print(os.sched_getscheduler(0))
"""
    assert run(program) == str(os.SCHED_OTHER)


@pytest.mark.slow
def test_where_it_is_not_allowed_the_reason_is_given_and_nothing_else_happens() -> None:
    program = (
        "import signal; print(bool(why), os.sched_getscheduler(0), signal.getsignal(signal.SIGXCPU) is signal.SIG_DFL)"
    )
    assert run(program, "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice") == "True 0 True"
