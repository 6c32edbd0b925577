"""Runs jobs in parallel, limited by a number of places."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final

from suite.passed import Passed, key_of
from suite.record import ONLY, VARIABLE, Result, read

ROOT: Final = Path(__file__).resolve().parents[2]
_TO_CLEAN_UP_S: Final = 30.0
_GIVES_WAY: Final = "5"
"""Niceness of computing jobs, so that waiting jobs, which have deadlines, get the processor at once."""

_TEMPORARY: Final = "PYTEST_DEBUG_TEMPROOT"
"""Where pytest creates its folders. Each job has its own: pytest fails if another run deletes what it looks at."""
_ENDED_BY_US: Final = -signal.SIGKILL
_LONGEST: Final = 120
"""Maximum length of a file name made from a test's name."""
_NO_TESTS: Final = 5
"""pytest's exit status if no test is left, because the one that ended the earlier process was the last."""


@dataclass(frozen=True)
class Job:
    """A command whose exit status is its result, or a run of pytest with the results of its tests."""

    name: str
    argv: tuple[str, ...]
    waits: bool = False

    is_pytest: bool = False
    only: tuple[str, ...] = ()
    """Ids of the tests to run; empty for all."""
    extended: str = ""
    """Why `make test` leaves it out; `make test-all` runs it."""
    reads: tuple[str, ...] = ()
    """Patterns of the files that determine its result: skipped if it passed on the same files. Empty: always run."""

    @property
    def file_name(self) -> str:
        name = "".join(each if each.isalnum() else "-" for each in self.name)
        return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{zlib.crc32(self.name.encode()):08x}"


@dataclass(frozen=True)
class Done:
    job: Job
    seconds: float
    processor_seconds: float
    output: str
    problems: tuple[str, ...] = ()
    """Errors other than failed tests."""
    tests: tuple[Result, ...] = ()
    is_known: bool = False
    """It was skipped, because it passed on the same files before."""

    @property
    def failed(self) -> tuple[Result, ...]:
        return tuple(test for test in self.tests if test.outcome == "failed")

    @property
    def failures(self) -> tuple[str, ...]:
        return (*(f"{test.test}{test.why}" for test in self.failed), *self.problems)

    @property
    def passed(self) -> int:
        if self.job.is_pytest:
            return sum(test.outcome == "passed" for test in self.tests)
        return int(not self.failures)


class Pool:
    """Has places for computing jobs and places for waiting jobs. Tests write below `folder`."""

    def __init__(self, logs: Path, folder: Path, *, computing: int, waiting: int, passed: Passed | None = None) -> None:
        self._logs = logs
        self._folder = folder
        self._places = {False: computing, True: waiting}
        self._passed = passed
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._stopped = False

    def run(self, jobs: Sequence[Job], say: Callable[[Done], None]) -> list[Done]:
        """Start the jobs in order and report each as it ends. On an interrupt, stop their processes first."""
        self._logs.mkdir(parents=True, exist_ok=True)
        done: list[Done] = []
        left = {waits: deque(job for job in jobs if job.waits is waits) for waits in self._places}
        executor = ThreadPoolExecutor(len(jobs) or 1)
        try:
            for future in self._started(left, executor):
                done.append(future.result())
                say(done[-1])
        finally:
            self._stop()
            executor.shutdown(cancel_futures=True)
        return done

    def _started(self, left: Mapping[bool, deque[Job]], executor: Executor) -> Iterator[Future[Done]]:
        """Results as they complete. A place takes the other kind's jobs once its own are used up: no core is idle."""
        running = dict[Future[Done], bool]()
        free = Counter(self._places)
        while True:
            for place in free:
                for jobs in (left[place], left[not place]):
                    while jobs and free[place]:
                        running[executor.submit(self._run_one, jobs.popleft())] = place
                        free[place] -= 1
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                free[running.pop(future)] += 1
                yield future

    def _run_one(self, job: Job) -> Done:
        if self._passed is None or not job.reads:
            return self._run_now(job)
        started, key = time.monotonic(), key_of(ROOT, job.argv, job.reads)
        if self._passed.has(key):
            return Done(job, time.monotonic() - started, 0.0, "", is_known=True)
        done = self._run_now(job)
        if key and not done.failures and key == key_of(ROOT, job.argv, job.reads):
            self._passed.add(key)
        return done

    def _run_now(self, job: Job) -> Done:
        started = time.monotonic()
        log = self._logs / f"{job.file_name}.txt"
        with log.open("wb") as output:
            if job.is_pytest:
                problems, tests, processor = self._run_tests(job, output.fileno())
            else:
                status, processor = self._run_process(job, output.fileno(), {})
                problems, tests = (() if status == 0 else (f"{job.name}: exit {status}",)), ()
        text = log.read_text(encoding="utf-8", errors="replace")
        return Done(job, time.monotonic() - started, processor, text, problems, tests)

    def _run_tests(self, job: Job, output: int) -> tuple[tuple[str, ...], tuple[Result, ...], float]:
        """Run tests; one that ends the process counts as failed, and another process runs the rest."""
        record = self._logs / f"{job.file_name}.jsonl"
        record.unlink(missing_ok=True)
        environment = {VARIABLE: str(record), _TEMPORARY: self._temporary(), **self._selection(job)}
        lost: list[str] = []
        processor = 0.0
        while True:
            status, more = self._run_process(job, output, environment)
            processor += more
            results = read(record)
            ended = [test for test, result in results.items() if result.outcome == "running" and test not in lost]
            lost += ended
            if not ended or self._stopped:
                break
        tests = tuple(_ended(result) if result.outcome == "running" else result for result in results.values())
        any_failed = any(test.outcome == "failed" for test in tests)
        # Otherwise no test was found, or a module could not be imported.
        is_told = status == 0 or (any_failed and status in {1, _NO_TESTS})
        return () if is_told else (f"{job.name}: pytest ended with {status}",), tests, processor

    def _temporary(self) -> str:
        """A folder with a short name, because it contains sockets."""
        for number in count():
            with suppress(FileExistsError):
                (self._folder / f"{number:x}").mkdir()
                return str(self._folder / f"{number:x}")
        raise AssertionError

    def _selection(self, job: Job) -> dict[str, str]:
        if not job.only:
            return {}
        wanted = self._logs / f"{job.file_name}.only"
        wanted.write_text("\n".join(job.only), encoding="utf-8")
        return {ONLY: str(wanted)}

    def _run_process(self, job: Job, output: int, environment: Mapping[str, str]) -> tuple[int, float]:
        """Run a process; returns its exit status and the CPU seconds of it and its children."""
        with self._lock:
            if self._stopped:
                return _ENDED_BY_US, 0.0
            process = subprocess.Popen(
                job.argv if job.waits else ("nice", "-n", _GIVES_WAY, *job.argv),
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self._groups.add(process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            _signal(process.pid, signal.SIGKILL)  # kill what it left; the group's id is ours until it is waited for
            self._groups.discard(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, used.ru_utime + used.ru_stime

    def _stop(self) -> None:
        """Interrupt as Ctrl-C would, so that tests can clean up the machine; then kill."""
        with self._lock:
            self._stopped = True
            for group in self._groups:
                _signal(group, signal.SIGINT)
        until = time.monotonic() + _TO_CLEAN_UP_S
        while self._groups and time.monotonic() < until:
            time.sleep(0.1)
        with self._lock:
            for group in self._groups:
                _signal(group, signal.SIGKILL)


def _ended(running: Result) -> Result:
    return replace(running, outcome="failed", why=": it ended its process")


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
