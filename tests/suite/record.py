"""A pytest plugin: writes the result of each test to a file as soon as it is known.

The file outlives the process. So when a test ends its process (a crash in C code, a hang that no exception ends), its
lane knows which test that was, and a second process that gets the same file runs the rest.
"""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

import pytest

VARIABLE: Final = "PARTAGE_TEST_RECORD"
GRACE_S: Final = 30.0
_STDERR: Final = os.dup(2)
_WHY_CHARACTERS: Final = 200

Outcome = Literal["running", "passed", "failed", "skipped"]


@dataclass(frozen=True)
class Result:
    """A test is `running` until its teardown is over."""

    test: str
    outcome: Outcome
    seconds: float = 0.0
    why: str = ""
    """Of one that failed: the beginning of what was raised, after a colon. Of one that was skipped: the reason."""


def read(path: Path) -> dict[str, Result]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {result.test: result for result in (Result(**json.loads(line)) for line in lines)}


_LIMIT_S: Final = 300.0
"""Where a project of its own, such as the template, has no setting."""


class Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = read(path)
        self._reports: list[pytest.TestReport] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known = [item for item in items if item.nodeid in self._known]
        items[:] = [item for item in items if item.nodeid not in self._known]
        config.hook.pytest_deselected(items=known)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        self._reports = []
        self._write(Result(item.nodeid, "running"))
        # pytest-timeout raises in the main thread; where that does not end the test, the process ends with its stacks.
        faulthandler.dump_traceback_later(_limit(item) + GRACE_S, exit=True, file=_STDERR)
        done = yield
        faulthandler.cancel_dump_traceback_later()
        outcomes = {report.outcome for report in self._reports}
        worst: Outcome = "failed" if "failed" in outcomes else "skipped" if "skipped" in outcomes else "passed"
        why_of = _reason if worst == "skipped" else _why
        seconds, why = sum(report.duration for report in self._reports), "".join(map(why_of, self._reports))
        self._write(Result(item.nodeid, worst, seconds, why))
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def _write(self, result: Result) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def _why(report: pytest.TestReport) -> str:
    if not report.failed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines: list[str] = (crash.message if crash else report.longreprtext).splitlines()
    return f": {lines[0][:_WHY_CHARACTERS]}" if lines else ""


def _reason(report: pytest.TestReport) -> str:
    """Why it was skipped, or is expected to fail."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return " ".join(said.removeprefix("Skipped: ").split())[:_WHY_CHARACTERS]


def _limit(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout") or _LIMIT_S)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ[VARIABLE])))
