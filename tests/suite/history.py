"""Results of runs for later ones, in ~/.cache/partage: shared by all checkouts, so that they outlive a fresh clone.

`passed.jsonl` has a line for each complete green run; `unsteady.jsonl` one for each run, with its unsteady tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

WINDOW: Final = 9
"""Number of earlier runs that count when a test is unsteady."""


@dataclass(frozen=True)
class Checkout:
    commit: str = ""
    clean: bool = False

    @classmethod
    def find(cls, root: Path) -> Self:
        """The checkout's state; without a commit if git fails, as in an unpacked archive."""
        commit, status = git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain")
        return cls(commit or "", status == "")


@dataclass(frozen=True)
class Run:
    kind: str
    """`test` or `test-all`."""
    commit: str = ""
    clean: bool = False
    """Whether git had no untracked or uncommitted files, before and after."""
    seconds: int = 0
    unsteady: dict[str, str] = field(default_factory=dict[str, str])
    """Why each unsteady test failed first."""
    jobs: Sequence[str] = ()
    """The requested jobs; empty for a complete run."""
    part: str = ""
    green: bool = False
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class History:
    def __init__(self, folder: Path) -> None:
        self._passed = folder / "passed.jsonl"
        self._runs = folder / "unsteady.jsonl"

    @classmethod
    def of_user(cls) -> Self:
        return cls(cache_folder())

    def remember(self, run: Run, parts: Sequence[str]) -> None:
        """Record a run; the last green part of a commit completes a run of all parts."""
        _append(self._runs, run)
        if run.green and not run.jobs:
            _append(self._passed, run)
        elif run.green and run.part and (of_parts := self._parts_of(run)).keys() >= set(parts):
            unsteady = {test: why for each in of_parts.values() for test, why in each.unsteady.items()}
            seconds = sum(each.seconds for each in of_parts.values())
            _append(self._passed, replace(run, jobs=(), part="", seconds=seconds, unsteady=unsteady))

    def _parts_of(self, run: Run) -> dict[str, Run]:
        same = (each for each in _read(self._runs) if (each.commit, each.clean) == (run.commit, run.clean))
        return {each.part: each for each in same if each.green and each.part}

    def passed(self) -> list[Run]:
        """Complete green runs, the oldest first."""
        return _read(self._passed)

    def times_unsteady(self, test: str, job: str) -> int:
        runs = [run for run in _read(self._runs) if not run.jobs or job in run.jobs]
        return sum(test in run.unsteady for run in runs[-WINDOW:])


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partage"


def git(root: Path, *words: str) -> str | None:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _append(path: Path, run: Run) -> None:
    """Append in a single write, so that concurrent runs don't mix their lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, (json.dumps(asdict(run)) + "\n").encode())
    finally:
        os.close(fd)


def _read(path: Path) -> list[Run]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Run(**fields) for fields in _decoded(lines)]


def _decoded(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Skip lines that a full disk or a kill has truncated."""
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


_DAYS: Final = 3
_COMMITS: Final = 60
_SHOWN: Final = 10


def last(history: History, root: Path) -> list[str]:
    """The newest green runs, whether HEAD is among them, and whether main is far ahead of the last green `test-all`."""
    runs, head = history.passed(), Checkout.find(root)
    lines = [_line(run) for run in runs[-_SHOWN:]] or ["no whole run has passed here yet"]
    of_head = [run for run in runs if run.commit == head.commit and run.clean]
    dirty = "" if head.clean else "; what is not committed was in none of them"
    kinds = " and ".join(sorted({f"make {run.kind}" for run in of_head}))
    lines.append(
        f"HEAD {head.commit[:8]} has passed {kinds}{dirty}" if of_head else f"HEAD {head.commit[:8]} has not passed"
    )
    return [*lines, *_far_behind(runs, root)]


def _line(run: Run) -> str:
    tree = "clean" if run.clean else "dirty"
    unsteady = f"  {len(run.unsteady)} unsteady: {', '.join(run.unsteady)}" if run.unsteady else ""
    return f"{run.at}  {run.kind:8}  {run.commit[:8]}  {tree}  {run.seconds:5d} s{unsteady}"


def _far_behind(runs: Sequence[Run], root: Path) -> list[str]:
    whole = [run.commit for run in runs if run.kind == "test-all" and run.clean]
    passed = [
        commit for commit in reversed(whole) if git(root, "merge-base", "--is-ancestor", commit, "main") is not None
    ]
    if not passed:
        return ["main has no green test-all"]
    commits = int(git(root, "rev-list", "--count", f"{passed[0]}..main") or 0)
    stamps = [int(git(root, "log", "-1", "--format=%ct", which) or 0) for which in (passed[0], "main")]
    days = (stamps[1] - stamps[0]) / 86400
    if days < _DAYS and commits < _COMMITS:
        return []
    return [f"main is {days:.1f} days and {commits} commits past the newest green test-all, {passed[0][:8]}"]
