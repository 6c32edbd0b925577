"""What ends a daemon and is no defect of ours, as one tree.

    PartageError            expected: one line an error, exit code 1
    DaemonError             the daemon must end, for a reason of its own
    ├── BadConfiguration    what it was told can't be, every mistake at once: exit code 78
    ├── CannotStart         something outside stands in the way of the start
    │   ├── CannotListen        an address can't be listened on
    │   └── AnotherRuns         another daemon of this kind holds the node's lock
    ├── EndedUnasked        a task or the run ended by itself before a stop was asked for
    └── StopHung            a step was not done within the deadline of the stop

Daemons put their own leaves under these; an expected error of another part, such as a refused key, ends a daemon in the
same way. Messages say what failed, on what, and what to do. Anything else that reaches
`life` is a defect: it keeps its traceback, and the exit code is 1.

Exit codes: 0 done, 1 failed, 2 usage, 78 bad configuration (EX_CONFIG; systemd can be told not to start again).
A second SIGTERM or SIGINT ends at once with 143 or 130.

`Report` logs what went wrong in a life, an expected error as one line and a defect with its traceback, and keeps the
exit code of the first.
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
    """What the daemon was told can't be."""

    exit_code = CONFIGURATION

    def __init__(self, *mistakes: str) -> None:
        """`mistakes` are lines that say which setting, from where, its value and what is allowed."""
        super().__init__(*mistakes)
        self.mistakes = mistakes

    def __str__(self) -> str:
        return "\n".join(self.mistakes)


class CannotStart(DaemonError):
    """Something outside stands in the way of the start."""


class CannotListen(CannotStart):
    """An address can't be listened on."""


class AnotherRuns(CannotStart):
    """Another daemon of this kind holds the node's lock."""


class EndedUnasked(DaemonError):
    """A task or the run ended by itself."""


class StopHung(DaemonError):
    """A step was not done within the deadline."""


def lines_of(error: PartageError) -> Sequence[str]:
    """What is told to people, one line each."""
    return error.mistakes if isinstance(error, BadConfiguration) else (" ".join(str(error).split("\n")),)


def exit_code_of(error: PartageError) -> int:
    """How a daemon ends that this error ends."""
    return error.exit_code if isinstance(error, DaemonError) else FAILED


def expected(error: BaseException) -> Sequence[PartageError]:
    """The expected errors that `error` consists of; empty where any part of it is a defect."""
    if isinstance(error, PartageError):
        return (error,)
    if not isinstance(error, BaseExceptionGroup):
        return ()
    parts = [expected(part) for part in error.exceptions]
    return [leaf for part in parts for leaf in part] if all(parts) else ()


_log = structlog.get_logger()


class Report:
    """What has gone wrong so far."""

    def __init__(self) -> None:
        self.exit_code = DONE

    @contextlib.contextmanager
    def noting(self) -> Generator[None]:
        """Tells what is raised within and goes on after it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (the last place where it can be told)
            self.tell(error)

    def tell(self, error: Exception) -> None:
        """Tells one error. Does not return where a step hangs: it may also hold the loop's own end."""
        known = expected(error)
        for line in (line for one in known for line in lines_of(one)):
            _log.critical(line)
        if not known:
            _log.critical("unexpected error; this is a defect, please report it", exc_info=error)
        self.exit_code = self.exit_code or (exit_code_of(known[0]) if known else FAILED)
        if any(isinstance(one, StopHung) for one in known):
            os._exit(self.exit_code)
