"""The expected reasons for which a daemon ends, as one tree of errors.

    PartageError            expected: one line an error, exit code 1
    DaemonError             the daemon must end, for a reason of its own
    ├── BadConfiguration    invalid settings, with every mistake at once: exit code 78
    ├── CannotStart         an external condition prevents the start
    │   ├── CannotListen        an address can't be listened on
    │   └── AnotherRuns         another daemon of this kind holds the node's lock
    ├── EndedUnasked        a task or the run ended by itself before a stop was requested
    └── StopHung            a step was not done within the deadline of the stop

Daemons add their own subclasses. An expected error of another part, such as a rejected key, ends a daemon in the same
way. Messages say what failed, on what, and what to do. Any other exception that reaches `life` is a bug: it is logged
with its traceback, and the exit code is 1.

Exit codes: 0 done, 1 failed, 2 usage, 78 bad configuration (EX_CONFIG; systemd can be told not to start again). A
second SIGTERM or SIGINT ends the process at once with 143 or 130.

`Report` logs every error of a run, an expected one as one line and a bug with its traceback, and keeps the exit code of
the first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from typing import ClassVar, Final

import structlog

from partage_plugins.errors import PartageError

DONE: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 78


class DaemonError(PartageError):
    exit_code: ClassVar[int] = FAILED


class BadConfiguration(DaemonError):
    """The settings are invalid; `mistakes` lists all reasons."""

    exit_code = CONFIGURATION

    def __init__(self, *mistakes: str) -> None:
        """`mistakes` are lines that name the setting, its source, its value and what is allowed."""
        super().__init__(*mistakes)
        self.mistakes = mistakes

    def __str__(self) -> str:
        return "\n".join(self.mistakes)


class CannotStart(DaemonError):
    """An external condition prevents the start."""


class CannotListen(CannotStart):
    """An address can't be listened on."""


class AnotherRuns(CannotStart):
    """Another daemon of this kind holds the node's lock."""


class EndedUnasked(DaemonError):
    """A task or the run ended by itself."""


class StopHung(DaemonError):
    """A step was not done within the deadline."""


def lines_of(error: PartageError) -> Sequence[str]:
    """The error's message for people, as single lines."""
    return error.mistakes if isinstance(error, BadConfiguration) else (" ".join(str(error).split("\n")),)


def exit_code_of(error: PartageError) -> int:
    """The exit code of a daemon that this error ends."""
    return error.exit_code if isinstance(error, DaemonError) else FAILED


def expected(error: BaseException) -> Sequence[PartageError]:
    """The expected errors that `error` consists of; empty if any part of it is a bug."""
    if isinstance(error, PartageError):
        return (error,)
    if not isinstance(error, BaseExceptionGroup):
        return ()
    parts = [expected(part) for part in error.exceptions]
    return [leaf for part in parts for leaf in part] if all(parts) else ()


_log = structlog.get_logger()


class Report:
    """Logs the errors of one run and keeps its exit code."""

    def __init__(self) -> None:
        self.exit_code = DONE

    @contextlib.contextmanager
    def noting(self) -> Generator[None]:
        """Logs an exception raised in the block and goes on after it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (the last place where it can be told)
            self.tell(error)

    def tell(self, error: Exception) -> None:
        """Logs one error. `StopHung` ends the process at once: a hanging step may also keep the loop from closing."""
        known = expected(error)
        for line in (line for one in known for line in lines_of(one)):
            _log.critical(line)
        if not known:
            _log.critical("unexpected error; this is a defect, please report it", exc_info=error)
        self.exit_code = self.exit_code or (exit_code_of(known[0]) if known else FAILED)
        if any(isinstance(one, StopHung) for one in known):
            os._exit(self.exit_code)
