"""Asks rows of one part after the other, each within its time and all within the part's, and writes each answer down.

A row that crashes, hangs or answers nonsense is an answer of that row, never the end of the part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from real_card import process, result
from real_card.ground import (
    CARRIED_COMMIT,
    DRIVER_PAST,
    DRIVER_ROOT,
    ROOT,
    NoGround,
    built_programs,
    driver_file,
    is_simulated,
    lay_out_driver,
    program,
    stage,
    user_environment,
)
from real_card.result import Answer, Result
from real_card.row import ABSENT, Row, Runs

PART_S: Final = 525.0
"""Of a whole part: under nine minutes, with what begins and ends it."""
LEAST_S: Final = 3.0
_LOOKS_S: Final = 30.0
_SAID: Final = 600
_IDENTIFIES: Final = ("uuid",)

Say = Callable[[str], None]


def ask(rows: Sequence[Row], path: Path, say: Say) -> Result:
    """What `path` has of other rows stays. Raises `NoGround` where there is no card to ask."""
    process.reap_all_below()
    if any(row.runs is Runs.STAGE for row in rows):
        built_programs()
    with tempfile.TemporaryDirectory(prefix="real-") as name:
        folder = Path(name)
        runner = _Runner(folder, _driver_root(folder))
        found = runner.begun(path)
        until = time.monotonic() + PART_S
        for row in rows:
            answer = runner.answer(row, until - time.monotonic())
            found = result.with_answer(found, answer)
            result.write(path, found)
            say(line(answer))
        found = msgspec.structs.replace(found, after=runner.look("state"))
        result.write(path, found)
    return found


def line(answer: Answer) -> str:
    mark = {True: "as expected", False: "DIFFERS", None: "told"}[answer.agrees]
    verdict = mark if answer.state == "answered" else answer.state
    return f"{answer.part:8} {answer.row:28} {verdict:12} {answer.seconds:6.1f} s  {answer.found}"


def _driver_root(folder: Path) -> str:
    return os.environ.get(DRIVER_ROOT) or str(lay_out_driver(folder / "driver"))


class _Runner:
    def __init__(self, folder: Path, driver_root: str) -> None:
        self._folder, past = folder, folder / "driver.so"
        past.symlink_to(driver_file("libcuda.so.1"))
        self._driver = {DRIVER_ROOT: driver_root, DRIVER_PAST: str(past)}

    def begun(self, path: Path) -> Result:
        machine = {name: value for name, value in self.look("card").items() if name not in _IDENTIFIES}
        earlier = earlier_answers(path) or Result(simulated=is_simulated(), commit="", machine=machine, before={})
        if earlier.machine != machine:
            raise NoGround(f"{path} has answers of another machine; name another file with --out")
        return msgspec.structs.replace(earlier, commit=_commit(), before=self.look("state"), after={})

    def look(self, what: str) -> dict[str, Any]:
        done = process.run(program("machine", what), user_environment(), limit_s=_LOOKS_S, folder=self._folder)
        facts = facts_in(done.said) if done.status == 0 else None
        if facts is None:
            raise NoGround(f"the card does not say its {what}: {_end(done.complained) or 'no answer'}")
        return facts

    def answer(self, row: Row, left_s: float) -> Answer:
        if left_s < LEAST_S:
            return _unanswered(row, "no time", "the part's time was over")
        argv, environment = self._command(row)
        done = process.run(argv, environment, limit_s=min(row.limit_s, left_s), folder=self._folder)
        answer = judged(row, done)
        return msgspec.structs.replace(answer, seconds=round(done.seconds, 1))

    def _command(self, row: Row) -> tuple[list[str], dict[str, str]]:
        module, *words = row.program
        if row.runs is Runs.BARE:
            return program(module, *words), {**user_environment(), **dict(row.environment)}
        argv = stage(module, *words) if row.runs is Runs.STAGE else stage("contained", row.runs.value, module, *words)
        ours = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return argv, {**ours, **self._driver, **dict(row.environment)}


def judged(row: Row, done: process.Done) -> Answer:
    """What a row's program said, as its answer."""
    if done.status is None:
        return _unanswered(row, "hung", f"not within {done.seconds:.0f} s: {_end(done.complained)}")
    facts = facts_in(done.said) if done.status == 0 else None
    if facts is None:
        return _unanswered(row, "failed", f"ended with {done.status}: {_end(done.complained) or 'nothing said'}")
    if ABSENT in facts:
        return _unanswered(row, "absent", str(facts[ABSENT]))
    try:
        agrees, found = row.judge(facts)
    except (LookupError, TypeError, ValueError) as error:
        return _unanswered(row, "failed", f"an answer that can't be judged: {error!r}")
    unsure = row.only_card and is_simulated()
    return Answer(
        row=row.name,
        part=row.part.value,
        state="answered",
        agrees=None if unsure else agrees,
        found=found,
        facts=facts,
        only_card=unsure,
    )


def _unanswered(row: Row, state: result.State, why: str) -> Answer:
    return Answer(row=row.name, part=row.part.value, state=state, found=why)


def facts_in(said: str) -> dict[str, Any] | None:
    """The last line that a program said, which is JSON; None where it is not."""
    try:
        facts = json.loads((said.splitlines() or [""])[-1])
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def _end(text: str) -> str:
    """The last line: of a traceback, what went wrong."""
    return next((line.strip()[-_SAID:] for line in reversed(text.splitlines()) if line.strip()), "")


def earlier_answers(path: Path) -> Result | None:
    """None where there is no file; raises `NoGround` for one that is not of ours, which is never written over."""
    try:
        return result.read(path)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise NoGround(f"{path} has no answers of a card: {error}; name another file with --out") from error


def _commit() -> str:
    """Of the checkout; where that is a copy without git, of what was carried there."""
    argv = ["git", "rev-parse", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    with suppress(OSError):
        return CARRIED_COMMIT.read_text().strip()
    return ""
