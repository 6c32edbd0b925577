"""A pytest plugin: writes each test's result to a file as soon as it is known.

The file outlives the process. So when a test ends its process (a crash in C code, a hang that no exception ends), the
pool knows which test that was, and a second process with the same file runs the rest.

Each result records whether the test used other processes, itself or through a fixture shared with other tests.
"""

from __future__ import annotations

import faulthandler
import json
import os
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

import pytest

from suite.external import ExternalUse

VARIABLE: Final = "PARTAGE_TEST_RECORD"
ONLY: Final = "PARTAGE_TEST_ONLY"
"""Names a file with the ids of the tests to run; others are deselected, and the order stays."""
GRACE_S: Final = 30.0
_STDERR: Final = os.dup(2)
_WHY_CHARACTERS: Final = 200

Outcome = Literal["running", "passed", "failed", "skipped"]


@dataclass(frozen=True)
class Result:
    """The result of a test, which is `running` until its teardown has ended."""

    test: str
    outcome: Outcome
    seconds: float = 0.0
    why: str = ""
    """For a failed test the start of its exception, after a colon; for a skipped test the reason."""
    external: bool = False
    """Whether it used other processes."""
    shared: tuple[str, ...] = ()
    """Fixtures with other processes that it shares with other tests."""


def read(path: Path) -> dict[str, Result]:
    """The last result of each test, in the order in which they ran."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {result.test: result for result in map(_decoded, lines)}


def _decoded(line: str) -> Result:
    result = Result(**json.loads(line))
    return replace(result, shared=tuple(result.shared))


_LIMIT_S: Final = 300.0
"""For a separate project without the setting, such as the template."""


class Recorder:
    def __init__(self, path: Path, only: frozenset[str] | None = None) -> None:
        self._known = read(path)
        self._only = only
        # Always open: tests compare their open descriptors, and the audit hook may write at any moment.
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._reports: list[pytest.TestReport] = []
        self._running: Result | None = None
        self._armed = (0.0, 0.0)
        self._shared: set[tuple[str, str]] = set()
        """Names of fixtures that are shared by tests and used other processes, with the place of their definition."""
        self._use = ExternalUse(self._uses_others)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left = [item for item in items if not self._is_wanted(item.nodeid)]
        items[:] = [item for item in items if self._is_wanted(item.nodeid)]
        config.hook.pytest_deselected(items=left)

    def _is_wanted(self, test: str) -> bool:
        return test not in self._known and (self._only is None or test in self._only)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        before = self._use.count
        try:
            return (yield)
        finally:
            if request.scope != "function" and self._use.count > before:
                self._shared.add((fixturedef.argname, fixturedef.baseid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        self._reports = []
        shared = self._shared_by(item)
        self._running = Result(item.nodeid, "running", external=bool(shared), shared=shared)
        self._write(self._running)
        self._end_late(_limit(item))
        done = yield
        self._write(self._result(item))
        self._running = None
        return done

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Arm again after a test failed, because pytest has just cancelled the dump that ends the process."""
        self._armed = (0.0, 0.0)
        self._end_late(_limit(node))

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def _end_late(self, limit_s: float) -> None:
        """End the process with all tracebacks if pytest-timeout's exception in the main thread ends no test.

        Each arming costs a thread, so one serves all tests of the next seconds that have the same limit.
        """
        every_s = GRACE_S / 3
        arming = limit_s, time.monotonic() // every_s
        if arming != self._armed:
            faulthandler.dump_traceback_later(limit_s + GRACE_S + every_s, exit=True, file=_STDERR)
            self._armed = arming

    def _result(self, item: pytest.Item) -> Result:
        outcomes = {report.outcome for report in self._reports}
        worst: Outcome = "failed" if "failed" in outcomes else "skipped" if "skipped" in outcomes else "passed"
        why_of = _reason if worst == "skipped" else _why
        seconds, why = sum(report.duration for report in self._reports), "".join(map(why_of, self._reports))
        shared = self._shared_by(item)
        external = bool(shared) or (self._running is not None and self._running.external)
        return Result(item.nodeid, worst, seconds, why, external, shared)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def _uses_others(self) -> None:
        """Record the use at once, because the test may end its process."""
        if self._running is not None and not self._running.external:
            self._running = replace(self._running, external=True)
            self._write(self._running)

    def _shared_by(self, item: pytest.Item) -> tuple[str, ...]:
        names = getattr(item, "fixturenames", ())
        return tuple(
            f"{base}::{name}" for name, base in sorted(self._shared) if name in names and item.nodeid.startswith(base)
        )

    def _write(self, result: Result) -> None:
        os.write(self._file, (json.dumps(asdict(result)) + "\n").encode())


def _why(report: pytest.TestReport) -> str:
    if not report.failed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines: list[str] = (crash.message if crash else report.longreprtext).splitlines()
    return f": {lines[0][:_WHY_CHARACTERS]}" if lines else ""


def _reason(report: pytest.TestReport) -> str:
    """The reason of a skip or an expected failure."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return " ".join(said.removeprefix("Skipped: ").split())[:_WHY_CHARACTERS]


def _limit(item: pytest.Item | pytest.Collector) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout") or _LIMIT_S)


def pytest_configure(config: pytest.Config) -> None:
    only = os.environ.pop(ONLY, None)  # popped, as it is for this process only: a test may run pytest, too
    wanted = frozenset(Path(only).read_text(encoding="utf-8").splitlines()) if only else None
    config.pluginmanager.register(Recorder(Path(os.environ[VARIABLE]), wanted))
