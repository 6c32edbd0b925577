"""Runs a target on one input and classifies the result: unremarkable, a kind of outcome, or a failure."""

import re
import resource
import signal
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

Target = Callable[[bytes], object]

_VARYING: Final = re.compile(r"""'[^']*'|"[^"]*"|\d+""")
_LONGEST_OUTCOME: Final = 120
WAITS: Final = 6


@dataclass(frozen=True)
class Limits:
    seconds: float = 5.0
    """Processor time; the limit of elapsed time is a multiple, since an input may also wait."""

    growth_bytes: int = 1 << 30


@dataclass(frozen=True)
class Failure:
    kind: str
    """The property that minimising must keep: the exception's type, `hang` or `memory`."""
    message: str
    data: bytes
    trace: str = ""

    @property
    def is_quick(self) -> bool:
        return self.kind not in {"hang", "memory", "killed"}


class Hang(BaseException):
    """The time limit was exceeded. Not an Exception, so that targets don't catch it."""


class Executor:
    def __init__(self, target: Target, limits: Limits) -> None:
        self._target = target
        self._limits = limits
        self._most_bytes = _peak_bytes() + limits.growth_bytes

    def run(self, data: bytes) -> Failure | str:
        started = time.process_time()
        try:
            with _deadline(self._limits.seconds):
                outcome = self._target(data)
        except KeyboardInterrupt:
            raise
        except Hang:
            return self._hang(data, started)
        except BaseException as error:  # noqa: BLE001 - whatever a target raises breaks its invariant, SystemExit too
            message = "".join(traceback.format_exception_only(error)).strip()
            return Failure(type(error).__name__, message, data, "".join(traceback.format_exception(error)))
        if time.process_time() - started > self._limits.seconds:  # C code delays the alarm
            return self._hang(data, started)
        if _peak_bytes() > self._most_bytes:
            return Failure("memory", f"memory grew by more than {self._limits.growth_bytes >> 20} MiB", data)
        return shape_of(outcome)

    def _hang(self, data: bytes, started: float) -> Failure:
        taken_s = time.process_time() - started
        return Failure("hang", f"does not end; {taken_s:.1f} s of the processor on one input", data)


def shape_of(outcome: object) -> str:
    """The outcome without variable parts, such as numbers and names, so that similar errors are one outcome."""
    return _VARYING.sub("_", str(outcome)[: 4 * _LONGEST_OUTCOME])[:_LONGEST_OUTCOME]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _time_is_up(_number: int, _frame: FrameType | None) -> None:
    raise Hang


@contextmanager
def _deadline(seconds: float) -> Generator[None]:
    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, seconds * WAITS),
    }
    before = {number: signal.signal(number, _time_is_up) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
