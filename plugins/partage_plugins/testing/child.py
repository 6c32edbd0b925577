"""The process that runs checks: one after another, one line of JSON for each, until done or dead.

Its argument is a file with the question. It ends without asking the plugin: threads and exit handlers that a plugin
left behind must not keep it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from partage_plugins.errors import DecodeError, PluginError, Refused
from partage_plugins.host.blackbox import BlackBox
from partage_plugins.host.child import EXIT_OUT_OF_MEMORY
from partage_plugins.host.confinement import confine
from partage_plugins.registry.entry_points import described
from partage_plugins.testing.catalogue import checks_of
from partage_plugins.testing.check import Broken, Case, Check, TimedActivity
from partage_plugins.testing.report import Question, Result
from partage_plugins.testing.subject import Subject

_PR_SET_CHILD_SUBREAPER: Final = 36
_LONGEST_TRACE: Final = 8000


def main(arguments: list[str]) -> int:
    """Answers the question; the exit status."""
    question = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Question)
    limits = question.subject.limits
    confine(limits.memory_bytes)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what plugins leave behind is found below this process
    activity = TimedActivity(BlackBox(question.box), call_s=limits.call_s, deadly=frozenset(question.deadly))
    case = Case(question.subject, activity, Path(question.folder))
    ourselves = os.getpid()
    with Path(question.results).open("ab", buffering=0) as results:
        for result, exhausted in _judged_in_turn(case, frozenset(question.checks)):
            if os.getpid() != ourselves:  # a plugin forked and let the copy return
                return 0
            results.write(msgspec.json.encode(result) + b"\n")
            if exhausted:
                return EXIT_OUT_OF_MEMORY
    return 0


def _judged_in_turn(case: Case, names: frozenset[str]) -> Iterator[tuple[Result, bool]]:
    subject = msgspec.json.encode(case.subject)
    for name, check in checks_of(case.subject).items():
        if name in names:  # each with a subject of its own, in case that a plugin changes what it is given
            yield judged(name, check, replace(case, subject=msgspec.json.decode(subject, type=Subject)))


def judged(name: str, check: Check, case: Case) -> tuple[Result, bool]:
    """What came of a check, and whether memory ran out on the way: then nothing in this process can be trusted."""
    try:
        check(case)
    except BaseException as error:  # noqa: BLE001  a plugin's objects may raise anything, anywhere
        exhausted = _exhausted(error)
        why = f"plugin {case.subject.name} ran out of memory: {exhausted}" if exhausted else _why(error)
        return Result(check=name, passed=False, why=why, trace=_trace(error)), bool(exhausted)
    return Result(check=name, passed=True), False


def _why(error: BaseException) -> str:
    match error:
        case Broken() | PluginError():
            return str(error)
        case Refused() | DecodeError():
            return f"refused what the subject says must work: {error}"
        case _:
            return f"raised {described(error)}"


def _exhausted(error: BaseException) -> str:
    """Where memory ran out; empty if it did not."""
    where = "outside of any hook"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PluginError):
            where = f"in {cause.hook}"
        if isinstance(cause, MemoryError):
            return where
        cause = cause.__cause__
    return ""


def _trace(error: BaseException) -> str:
    """The stack of what the plugin raised; nothing where only a promise was broken."""
    cause = error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    raised = cause or error
    if isinstance(raised, Broken | PluginError):
        return ""
    return "".join(traceback.format_exception(raised))[-_LONGEST_TRACE:]


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except BaseException:  # noqa: BLE001  said, whatever it is
        traceback.print_exc()
        status = 1
    os._exit(status)
