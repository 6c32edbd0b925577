"""The test pool and its lanes: a test that crashes or hangs affects no other."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from suite import plan
from suite.listing import listing
from suite.pool import ROOT, Done, Job, Pool
from suite.record import Result
from suite.report import report
from suite.second import Failed, Settled

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
    (tmp_path / "folders").mkdir()
    return Pool(tmp_path / "logs", tmp_path / "folders", computing=1, waiting=1).run(jobs, lambda _: None)


def of_tests(folder: Path, tests: str) -> Job:
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 60\ntimeout_method = signal\n")
    (folder / "conftest.py").write_text("import suite.record\nsuite.record.GRACE_S = 3.0\n")
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
        "crashes": "failed",
        "leaves_at_once": "failed",
        "hangs": "failed",
        "hangs_where_no_exception_arrives": "failed",
        "skipped": "skipped",
        "last": "passed",
        "wrong_at_its_end": "failed",
    }
    assert [failure.partition("::")[2] for failure in done.failures] == [
        "test_wrong: assert 1 == 2",
        "test_crashes: it ended its process",
        "test_leaves_at_once: it ended its process",
        "test_hangs: Failed: Timeout (>0.3s) from pytest-timeout.",
        "test_hangs_where_no_exception_arrives: it ended its process",
        "test_wrong_at_its_end: ValueError",
    ]
    assert [result.why for result in done.tests if result.outcome == "skipped"] == ["for a reason"]
    assert done.passed == 2
    assert "in test_hangs_where_no_exception_arrives" in done.output  # with its stack


@pytest.mark.parametrize("waits", [True, False])
def test_once_one_kind_is_all_done_the_other_takes_its_place(waits: bool, tmp_path: Path) -> None:  # noqa: FBT001
    meeting = "touch {0}; for _ in $(seq 600); do test -e {1} && exit 0; sleep 0.1; done; exit 1"
    files = tmp_path / "one", tmp_path / "other"
    jobs = [Job(mine.name, ("bash", "-c", meeting.format(mine, its)), waits) for mine, its in (files, files[::-1])]
    of_other_kind = Job("other kind", ("bash", "-c", f"test ! -e {files[1]}"), not waits)
    assert [done.failures for done in run(tmp_path, *jobs, of_other_kind)] == [(), (), ()]


EXTERNAL = """
import asyncio, os, socket, subprocess, sys
import pytest

@pytest.fixture(scope="module")
def peer():
    serving = "import socket; s = socket.create_server(('', 0)); print(s.getsockname()[1], flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", serving], stdin=-1, stdout=-1, text=True) as process:
        yield int(process.stdout.readline())
        process.stdin.close()

@pytest.fixture(scope="module")
def uses_the_peer(peer): return peer

def test_computes(): pass
def test_starts_a_process(): subprocess.run(["true"])
def test_forks():
    if not (child := os.fork()): os._exit(0)
    os.waitpid(child, 0)
def test_shares_a_process(uses_the_peer): pass
def test_connects_elsewhere():
    with socket.socket() as s: s.connect_ex(("127.0.0.1", 9))
def test_connects_to_itself(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s, socket.create_connection(s.getsockname()): pass
    async def serve():
        server = await asyncio.start_unix_server(lambda r, w: w.close(), str(tmp_path / "s"))
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        await reader.read()
        writer.close()
        server.close()
    asyncio.run(serve())
def test_starts_a_process_and_crashes():
    subprocess.run(["true"])
    os._exit(1)
"""


@pytest.mark.slow
def test_it_is_observed_which_tests_use_other_processes_themselves_or_by_a_shared_fixture(tmp_path: Path) -> None:
    (done,) = run(tmp_path, of_tests(tmp_path / "tests", EXTERNAL))
    seen = {result.test.partition("::test_")[2]: (result.external, result.shared) for result in done.tests}
    assert seen == {
        "computes": (False, ()),
        "starts_a_process": (True, ()),
        "forks": (True, ()),
        "shares_a_process": (True, ("test_it.py::peer",)),
        "connects_elsewhere": (True, ()),
        "connects_to_itself": (False, ()),
        "starts_a_process_and_crashes": (True, ()),
    }


@pytest.mark.slow
def test_a_job_runs_only_the_tests_that_it_names_in_their_order(tmp_path: Path) -> None:
    job = replace(of_tests(tmp_path / "tests", TESTS), only=("test_it.py::test_last", "test_it.py::test_first"))
    (done,) = run(tmp_path, job)
    assert [result.test for result in done.tests] == ["test_it.py::test_first", "test_it.py::test_last"]
    assert not done.failures


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


def test_what_every_push_needs_is_everything_but_what_is_extended_and_parts_make_the_whole() -> None:
    everything = {job.name: job for job in plan.everything()}
    push = {job.name for job in plan.every_push()}
    assert {name for name, job in everything.items() if not job.extended} == push
    assert set(map(plan.part_of, everything.values())) == set(plan.PARTS)


@pytest.mark.slow
def test_the_list_of_tests_is_that_of_the_sources() -> None:
    """`make tables` updates it. A removed test, or one that moves to `make test-all`, shows in a review."""
    assert (ROOT / "tests/suite/list.txt").read_text(encoding="utf-8") == listing(ROOT)


def test_the_list_says_which_tests_are_in_test_all_alone_and_why(tmp_path: Path) -> None:
    file = tmp_path / "tests/test_it.py"
    file.parent.mkdir()
    file.write_text(
        "import pytest\ndef test_a(): pass\n@pytest.mark.extended('takes a minute')\nasync def test_b(): pass\n"
        "class TestC:\n    @pytest.mark.extended('likewise')\n    def test_d(self): pass\ndef helper(): pass\n"
    )
    (tmp_path / "tests/test_other.py").write_text(
        "pytestmark = [pytest.mark.extended('all of it')]\ndef test_e(): pass\n"
    )
    assert listing(tmp_path).splitlines()[:5] == [
        "tests/test_it.py: 3",
        "    test_b: make test-all alone: takes a minute",
        "    test_d: make test-all alone: likewise",
        "tests/test_other.py: 1",
        "    test_e: make test-all alone: all of it",
    ]


def test_every_unit_test_is_in_one_quick_job() -> None:
    files = [file for kind in ("unit", "contract") for file in (ROOT / "tests" / kind).rglob("test_*.py")]
    files += (ROOT / "plugins/dialects/tests").rglob("test_*.py")
    assert files_of(plan.inner_loop()) == Counter(files)


def test_a_command_fails_by_its_exit_status_and_keeps_its_output(tmp_path: Path) -> None:
    jobs = Job("good", ("echo", "hello")), Job("bad", ("sh", "-c", "echo why; exit 7"))
    bad, good = sorted(run(tmp_path, *jobs), key=lambda done: done.job.name)
    assert (good.passed, good.failures, good.output) == (1, (), "hello\n")
    assert (bad.passed, bad.failures, bad.output) == (0, ("bad: exit 7",), "why\n")


def test_the_report_says_what_took_long_was_skipped_unsteady_and_failed_and_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each reason for skips once, and each unsteady test's first failure; an unsteady test counts as passed."""
    lint, lane = Job("lint", ("true",)), Job("lane", ("true",), is_pytest=True)
    no_valgrind = Result("a.py::test_c", "skipped", why="needs valgrind")
    unsteady = Result("a.py::test_d", "failed", 1.0, ": not within 90 s", external=True)
    tests = (
        Result("a.py::test_a", "passed", 1.0),
        Result("a.py::test_b", "failed", 9.0),
        no_valgrind,
        no_valgrind,
        Result("b.py::test_c", "skipped"),
        unsteady,
    )
    done = [Done(lint, 1.0, 0.5, ""), Done(lane, 10.0, 9.0, "", (), tests)]
    assert report(done, Settled(("a.py::test_b",), (Failed(lane, unsteady),)), 10.0) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("the 20 slowest tests:") + 1].split() == ["9.0", "s", "a.py::test_b"]
    assert lines[-5:] == [
        "SKIPPED 1: no reason given",
        "SKIPPED 2: needs valgrind",
        "UNSTEADY a.py::test_d: not within 90 s",
        "FAILED a.py::test_b",
        "partage: 3 passed, 1 failed",
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
