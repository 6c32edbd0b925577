"""The pool and its lanes of tests: a test that crashes or hangs costs itself and nothing else."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from suite import plan
from suite.__main__ import report
from suite.pool import ROOT, Done, Job, Pool
from suite.record import Result

TESTS = """
import os, signal, subprocess, time
import pytest

def test_first(): pass
def test_wrong(): assert 1 == 2
def test_crashes(): os.kill(os.getpid(), signal.SIGSEGV)
def test_leaves_at_once(): os._exit(0)

@pytest.mark.timeout(0.3)
def test_hangs(): time.sleep(1000)

@pytest.mark.timeout(0.3)
def test_hangs_where_no_exception_arrives():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(1000)

def test_skipped(): pytest.skip("for a reason")
def test_last(): pass

@pytest.fixture
def broken(): yield; raise ValueError
def test_wrong_at_its_end(broken): pass
"""


def run(tmp_path: Path, *jobs: Job) -> list[Done]:
    return Pool(tmp_path / "logs", computing=1, waiting=1).run(jobs, lambda _: None)


def of_tests(folder: Path, tests: str) -> Job:
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 60\ntimeout_method = signal\n")
    (folder / "conftest.py").write_text("import suite.record\nsuite.record.GRACE_S = 0.2\n")
    (folder / "test_it.py").write_text(tests)
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "suite.record", "-p", "no:cacheprovider", str(folder))
    return Job("lane", (*argv, "-c", str(folder / "pytest.ini")), is_pytest=True)


@pytest.mark.slow
def test_a_test_that_ends_its_process_or_hangs_costs_one_test(tmp_path: Path) -> None:
    (done,) = run(tmp_path, of_tests(tmp_path / "tests", TESTS))
    outcomes = {result.test.partition("::")[2].removeprefix("test_"): result.outcome for result in done.tests}
    assert outcomes == {
        "first": "passed",
        "wrong": "failed",
        "crashes": "running",
        "leaves_at_once": "running",
        "hangs": "failed",
        "hangs_where_no_exception_arrives": "running",
        "skipped": "skipped",
        "last": "passed",
        "wrong_at_its_end": "failed",
    }
    assert [failure.partition("::")[2] for failure in done.failures] == [
        "test_wrong: assert 1 == 2",
        "test_hangs: Failed: Timeout (>0.3s) from pytest-timeout.",
        "test_wrong_at_its_end: ValueError",
        "test_crashes: it ended its process",
        "test_leaves_at_once: it ended its process",
        "test_hangs_where_no_exception_arrives: it ended its process",
    ]
    assert [result.why for result in done.tests if result.outcome == "skipped"] == ["for a reason"]
    assert done.passed == 2
    assert "in test_hangs_where_no_exception_arrives" in done.output  # with its stack


@pytest.mark.slow
@pytest.mark.parametrize("tests", ["", "import nothing_of_this_name\n"])
def test_a_lane_without_a_test_fails(tmp_path: Path, tests: str) -> None:
    (done,) = run(tmp_path, of_tests(tmp_path / "tests", tests))
    assert done.passed == 0
    assert [failure.partition(": ")[0] for failure in done.failures] == ["lane"]


def files_of(jobs: list[Job]) -> Counter[Path]:
    folders = [Path(word) for job in jobs if job.is_pytest for word in job.argv if word.startswith(str(ROOT / "tests"))]
    folders += [
        Path(word) for job in jobs if job.is_pytest for word in job.argv if word.startswith(str(ROOT / "plugins"))
    ]
    return Counter(file for folder in folders for file in folder.rglob("test_*.py"))


def test_every_test_is_in_one_job() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "plugins").glob("*/tests/**/test_*.py")]
    assert files_of(plan.everything()) == Counter(files)


def test_what_the_plan_names_exists() -> None:
    assert set(plan.SLOW_FIRST) <= {job.name for job in plan.everything()}


def test_every_unit_test_is_in_one_quick_job() -> None:
    files = [file for kind in ("unit", "contract") for file in (ROOT / "tests" / kind).rglob("test_*.py")]
    files += (ROOT / "plugins/dialects/tests").rglob("test_*.py")
    assert files_of(plan.inner_loop()) == Counter(files)


def test_a_command_fails_by_its_exit_status_and_keeps_its_output(tmp_path: Path) -> None:
    good, bad = run(tmp_path, Job("good", ("echo", "hello")), Job("bad", ("sh", "-c", "echo why; exit 7")))
    assert (good.passed, good.failures, good.output) == (1, (), "hello\n")
    assert (bad.passed, bad.failures, bad.output) == (0, ("bad: exit 7",), "why\n")


def test_the_report_ends_with_what_failed_and_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    lint, lane = Job("lint", ("true",)), Job("lane", ("true",), is_pytest=True)
    tests = (
        Result("a.py::test_a", "passed", 1.0),
        Result("a.py::test_b", "failed", 9.0),
        Result("a.py::test_c", "skipped"),
    )
    done = [Done(lint, 1.0, 0.5, "", ()), Done(lane, 10.0, 9.0, "", ("a.py::test_b",), tests)]
    assert report(done, 10.0) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("the 20 slowest tests:") + 1].split() == ["9.0", "s", "a.py::test_b"]
    assert lines[-2:] == ["FAILED a.py::test_b", "partage: 2 passed, 1 failed"]


def test_the_report_says_each_reason_for_which_tests_were_skipped_once(capsys: pytest.CaptureFixture[str]) -> None:
    lanes = Job("one", ("true",), is_pytest=True), Job("other", ("true",), is_pytest=True)
    no_valgrind, no_driver, silent = (
        Result("a.py::test_a", "skipped", why="needs valgrind"),
        Result("a.py::test_b", "skipped", why="driver-470 can't be had"),
        Result("a.py::test_c", "skipped"),
    )
    passed = Result("b.py::test_d", "passed")
    done = [Done(lanes[0], 1.0, 1.0, "", (), (no_valgrind, no_driver, silent, passed))]
    done += [Done(lanes[1], 1.0, 1.0, "", (), (no_valgrind,))]
    assert report(done, 1.0) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-4:] == [
        "SKIPPED 1: no reason given",
        "SKIPPED 1: driver-470 can't be had",
        "SKIPPED 2: needs valgrind",
        "partage: 1 passed, 0 failed",
    ]


def test_what_a_job_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    (done,) = run(tmp_path, Job("leaves", ("sh", "-c", "sleep 1000 & echo $!")))
    wait_until_gone(int(done.output))


def test_an_interrupted_run_ends_its_jobs(tmp_path: Path) -> None:
    log = tmp_path / "logs/waits.txt"

    def interrupt_once_it_runs() -> None:
        while not (log.exists() and log.read_text().endswith("\n")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt_once_it_runs)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Job("waits", ("sh", "-c", "echo $$; exec sleep 1000")))
    interrupting.join()
    wait_until_gone(int(log.read_text()))


def wait_until_gone(pid: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([fd], [], [])
    os.close(fd)
