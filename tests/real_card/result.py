"""The file of answers: the runs, their cards, and the answer of each row in each run.

Files of several runs and machines are merged. For each row, card and driver the newest answer counts; a row that a run
had no time for never replaces an answer. Merging is associative, commutative and idempotent, so no order loses one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from partage_base.files import write_whole

VERSION: Final = 2
NO_TIME: Final = "no time"
State = Literal["answered", "absent", "failed", "hung", "no time"]
"""A row's result: answered; the machine lacks something; its program failed; it was ended; there was no time."""
SETTLED: Final = frozenset(("answered", "absent"))


class Run(Struct, frozen=True, kw_only=True):
    began: str
    """UTC, ISO 8601."""
    simulated: bool
    commit: str
    machine: dict[str, Any]
    """Card, driver and kernel; nothing that identifies the machine."""
    before: dict[str, Any]
    after: dict[str, Any] = {}
    """The card's settings and processes, before the first row and after the last; empty if the run was interrupted."""

    @property
    def left_as_found(self) -> bool:
        return bool(self.after) and all(self.after.get(name) == value for name, value in self.before.items())

    @property
    def place(self) -> tuple[str, str]:
        return str(self.machine.get("card", "")), str(self.machine.get("driver", ""))


class Answer(Struct, frozen=True, kw_only=True):
    row: str
    run: str = ""
    """The name of its run; empty until it is in a file."""
    state: State
    seconds: float = 0.0
    agrees: bool | None = None
    """None: nothing was expected, or only a real card can answer and this was none."""
    found: str = ""
    """A sentence; for a row that failed or was not asked, the reason."""
    facts: dict[str, Any] = {}
    only_card: bool = False
    """A simulated card's answer to a question that only a real one can answer."""


class Result(Struct, frozen=True, kw_only=True):
    v: Literal[2] = VERSION
    runs: dict[str, Run] = {}
    answers: tuple[Answer, ...] = ()

    def __post_init__(self) -> None:
        for answer in self.answers:
            if answer.run not in self.runs:
                raise ValueError(f"answers: {answer.row}: there is no run {answer.run}")


def merged(results: Iterable[Result]) -> Result:
    runs: dict[str, Run] = {}
    answers: dict[tuple[str, tuple[str, str]], Answer] = {}
    all_of = list(results)
    for result in all_of:
        for name, run in result.runs.items():
            runs[name] = max(runs.get(name, run), run, key=_finished)
    for result in all_of:
        for answer in result.answers:
            key = answer.row, runs[answer.run].place
            answers[key] = max(answers.get(key, answer), answer, key=lambda each: _newness(each, runs))
    return Result(
        runs={name: runs[name] for name in sorted(runs, key=lambda name: (runs[name].began, name))},
        answers=tuple(answers[key] for key in sorted(answers)),
    )


def _finished(run: Run) -> tuple[bool, bytes]:
    return bool(run.after), _encoded(run)


def _newness(answer: Answer, runs: Mapping[str, Run]) -> tuple[bool, str, str, bytes]:
    return answer.state != NO_TIME, runs[answer.run].began, answer.run, _encoded(answer)


def _encoded(value: Struct) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def settled(result: Result, *, simulated: bool) -> set[str]:
    """Rows that some card answered, or that a machine lacks something for. Simulated cards settle none for real."""
    return {
        answer.row
        for answer in result.answers
        if answer.state in SETTLED and result.runs[answer.run].simulated == simulated
    }


def write(path: Path, result: Result) -> None:
    """Written atomically, so that a kill leaves the former file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def read(path: Path) -> Result:
    """Raises `msgspec.MsgspecError` for an invalid file, `OSError` for an unreadable one."""
    return msgspec.json.decode(path.read_bytes(), type=Result)
