"""The file of answers: which runs there were, on which cards, and what each row answered in which of them.

Files of several runs and machines are merged. For each row, card and driver the newest answer stands; a row that a run
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
"""What became of a row: answered; the machine lacks something; its program failed; was ended; there was no time."""
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
    """The card's settings and processes, before the first row and after the last; empty if the run was cut off."""

    @property
    def left_as_found(self) -> bool:
        return bool(self.after) and all(self.after.get(name) == value for name, value in self.before.items())

    @property
    def place(self) -> tuple[str, str]:
        return str(self.machine.get("card", "")), str(self.machine.get("driver", ""))


class Answer(Struct, frozen=True, kw_only=True):
    row: str
    run: str = ""
    """The name of its run; empty until a file has it."""
    state: State
    seconds: float = 0.0
    agrees: bool | None = None
    """None: nothing was expected, or only a card can tell and this was none."""
    found: str = ""
    """In words; where it failed or was not asked, why."""
    facts: dict[str, Any] = {}
    only_card: bool = False
    """The answer of a simulated card to what only a real one knows."""


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
    """The rows that some card answered, or that a machine lacks something for. Simulated ones settle none for real."""
    return {
        answer.row
        for answer in result.answers
        if answer.state in SETTLED and result.runs[answer.run].simulated == simulated
    }


def write(path: Path, result: Result) -> None:
    """Whole or not at all, so that a kill between two writes leaves the former file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def read(path: Path) -> Result:
    """Raises `msgspec.MsgspecError` for what is no result, `OSError` for what cannot be read."""
    return msgspec.json.decode(path.read_bytes(), type=Result)
