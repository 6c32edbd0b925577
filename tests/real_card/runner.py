"""Asks rows one after the other within one budget of time, and writes each answer at once.

A row that crashes, hangs or prints nonsense is an answer of that row, never the end of the run.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from real_card import process
from real_card.comparison import Unreadable, read_facts
from real_card.ground import (
    DRIVER_PAST,
    DRIVER_ROOT,
    NoGround,
    built_programs,
    commit,
    driver_file,
    is_simulated,
    lay_out_driver,
    program,
    stage,
    user_environment,
)
from real_card.plan import Ground, Step, next_step
from real_card.result import NO_TIME, Answer, Result, Run, State, merged, write
from real_card.row import ABSENT, ALSO, Row, Runs
from real_card.rows import EVERY

END_S: Final = 10.0
"""Reserved in the budget for the last look at the card."""
_LEAST_S: Final = 1.0
_SAID: Final = 600
_LOGGED: Final = 16 << 10
"""Characters of each of its streams that are kept of a row with an unexpected result."""
_IDENTIFIES: Final = ("uuid",)

Say = Callable[[str], None]


class Asks(Protocol):
    def answers(self, step: Step) -> Iterator[Answer]:
        """The row's own answer, and those to other rows that its program found as well."""
        ...


class Answers:
    """All known answers, in their file; this run adds to them."""

    def __init__(self, path: Path, earlier: Result, run: Run) -> None:
        self._path, self._known, self._run = path, earlier, run
        self._name = secrets.token_hex(4)
        self.add()

    def add(self, *answers: Answer) -> None:
        of_run = tuple(msgspec.structs.replace(each, run=self._name) for each in answers)
        self._known = merged((self._known, Result(runs={self._name: self._run}, answers=of_run)))
        write(self._path, self._known)

    def end(self, after: dict[str, Any]) -> None:
        self._run = msgspec.structs.replace(self._run, after=after)
        self.add()

    @property
    def run(self) -> Run:
        return self._run

    def of_run(self) -> list[Answer]:
        return [each for each in self._known.answers if each.run == self._name]


def ask(  # noqa: PLR0913  what a run is
    rows: Sequence[Row], path: Path, earlier: Result, until: float, *, own_card: bool, say: Say
) -> Answers:
    """Ask until that time of the monotonic clock. Raises `NoGround` if there is no card to ask."""
    process.reap_all_below()
    built_programs()
    with tempfile.TemporaryDirectory(prefix="real-") as name:
        folder = Path(name)
        runner = Runner(
            folder, os.environ.get(DRIVER_ROOT) or str(lay_out_driver(folder / "driver")), path.with_suffix(".log")
        )
        machine = runner.look("card", _left_s(until))
        ground = Ground(machine.pop("free_bytes"), own_card=own_card)
        kept = {name: value for name, value in machine.items() if name not in _IDENTIFIES}
        before = runner.look("state", _left_s(until))
        began = datetime.now(UTC).isoformat(timespec="seconds")
        run = Run(began=began, simulated=is_simulated(), commit=commit(), machine=kept, before=before)
        answers = Answers(path, earlier, run)
        for asked, answer in enumerate(each_answer(runner, rows, ground, until - END_S), start=1):
            answers.add(answer)
            say(line(answer, f"{asked}/{len(rows)}", _left_s(until)))
        answers.end(runner.look("state", _left_s(until)))
    return answers


def each_answer(runner: Asks, rows: Sequence[Row], ground: Ground, until: float) -> Iterator[Answer]:
    """Every row once: asked, answered by another's program, or the reason why not."""
    waiting = {row.name: row for row in rows}
    for row in rows:
        if why := ground.forbids(row):
            del waiting[row.name]
            yield unanswered(row, "absent", why)
    while step := next_step(list(waiting.values()), until - time.monotonic()):
        for answer in runner.answers(step):
            if waiting.pop(answer.row, None):
                yield answer
    for row in waiting.values():
        yield unanswered(
            row, NO_TIME, f"takes {row.cost_s:g} s, and {max(0.0, until - time.monotonic()):.0f} were left"
        )


def _left_s(until: float) -> float:
    return max(_LEAST_S, until - time.monotonic())


def line(answer: Answer, number: str, left_s: float) -> str:
    mark = {True: "as expected", False: "DIFFERS", None: "told"}[answer.agrees]
    verdict = mark if answer.state == "answered" else answer.state
    left = f"{int(left_s) // 60}:{int(left_s) % 60:02} left"
    return f"{number:>6}  {left}  {answer.row:27} {verdict:12}{answer.seconds:6.1f} s  {answer.found}"


class Runner:
    def __init__(self, folder: Path, driver_root: str, log: Path) -> None:
        self._folder, self._log, past = folder, log, folder / "driver.so"
        past.symlink_to(driver_file("libcuda.so.1"))
        self._driver = {DRIVER_ROOT: driver_root, DRIVER_PAST: str(past)}

    def look(self, what: str, limit_s: float) -> dict[str, Any]:
        done = process.run(program("machine", what), user_environment(), limit_s=limit_s, folder=self._folder)
        facts = facts_in(done.said) if done.status == 0 else None
        if facts is None:
            raise NoGround(f"the card does not say its {what}: {_end(done.complained) or 'no answer'}")
        return facts

    def answers(self, step: Step) -> Iterator[Answer]:
        argv, environment = self._command(step.row)
        done = process.run(argv, environment, limit_s=step.limit_s, folder=self._folder)
        facts = _facts(step.row, done)
        seconds = round(done.seconds, 1)
        also: Mapping[str, Any] = facts.pop(ALSO, None) or {} if facts else {}
        if done.status is None and step.limit_s < step.row.limit_s:
            answer = unanswered(step.row, NO_TIME, f"ended after {seconds:g} s, when the time was over")
        else:
            answer = judged(step.row, done, facts)
        if answer.state in ("failed", "hung") or answer.agrees is False:
            self._log_complaints(step.row, done)
        yield msgspec.structs.replace(answer, seconds=seconds)
        yield from (judged(row, done, also[row.name]) for row in EVERY if row.name in also)

    def _log_complaints(self, row: Row, done: process.Done) -> None:
        """An answer has one line of a program's output; debugging needs more."""
        with self._log.open("a") as log:
            log.write(
                f"== {row.name}: ended with {done.status}\n{done.said[-_LOGGED:]}\n{done.complained[-_LOGGED:]}\n"
            )

    def _command(self, row: Row) -> tuple[list[str], dict[str, str]]:
        module, *words = row.program
        users = {**user_environment(), **dict(row.environment)}
        if row.runs is Runs.CONFORMANCE:
            return [str(built_programs() / "conformance"), *row.program], users
        if row.runs is Runs.BARE:
            return program(module, *words), users
        argv = stage(module, *words) if row.runs is Runs.STAGE else stage("contained", row.runs.value, module, *words)
        ours = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return argv, {**ours, **self._driver, **dict(row.environment)}


def _facts(row: Row, done: process.Done) -> dict[str, Any] | None:
    if done.status != 0:
        return None
    if row.runs is not Runs.CONFORMANCE:
        return facts_in(done.said)
    try:
        return dict(read_facts(done.said, row.name))
    except Unreadable:
        return None


def judged(row: Row, done: process.Done, facts: dict[str, Any] | None) -> Answer:
    """A row's program's output, as its answer."""
    if done.status is None:
        return unanswered(row, "hung", f"not within {done.seconds:.0f} s: {_end(done.complained)}")
    if facts is None:
        return unanswered(row, "failed", f"ended with {done.status}: {_end(done.complained) or 'no answer'}")
    if ABSENT in facts:
        return unanswered(row, "absent", str(facts[ABSENT]))
    try:
        agrees, found = row.judge(facts)
    except (LookupError, TypeError, ValueError) as error:
        return unanswered(row, "failed", f"an answer that can't be judged: {error!r}")
    unsure = row.only_card and is_simulated()
    return Answer(
        row=row.name,
        state="answered",
        agrees=None if unsure else agrees,
        found=found,
        facts=facts,
        only_card=unsure,
    )


def unanswered(row: Row, state: State, why: str) -> Answer:
    return Answer(row=row.name, state=state, found=why)


def facts_in(said: str) -> dict[str, Any] | None:
    """The last line of output, if it is JSON, otherwise None."""
    try:
        facts = json.loads((said.splitlines() or [""])[-1])
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def _end(text: str) -> str:
    """The last line: of a traceback, the error."""
    return next((line.strip()[-_SAID:] for line in reversed(text.splitlines()) if line.strip()), "")
