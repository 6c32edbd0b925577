"""Runs a check in a fork of this process: a plugin that hangs, crashes or leaks fails that check and nothing else."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

from partage_plugins.errors import DecodeError, PluginError, Refused
from partage_plugins.host.blackbox import BlackBox
from partage_plugins.host.confinement import confine
from partage_plugins.process_group import how_ended
from partage_plugins.registry.entry_points import described
from partage_plugins.testing.check import HUNG, Broken, Case, Check, TimedActivity
from partage_plugins.testing.leftovers import end_children
from partage_plugins.testing.subject import Subject

_PR_SET_CHILD_SUBREAPER: Final = 36
_CALLS_A_CHECK: Final = 20  # a check that takes this many deadlines hangs outside of any hook
_LONGEST: Final = 8000
_OUTPUT, _VERDICT = "output", "verdict"
"""Files of a fork: the plugin's output, and the reason why it fails; no verdict if the fork died."""


def failure(check: Check, subject: Subject) -> str:
    """Why the plugin fails, and where; empty if it passes."""
    with TemporaryDirectory(prefix="partage-kit-", ignore_cleanup_errors=True) as name:
        case = Case(subject, TimedActivity(BlackBox(), call_s=subject.limits.call_s), Path(name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the fork does not need locks that other threads hold
            pid = os.fork()
        if not pid:
            _judge(check, case)
        patience_s = _CALLS_A_CHECK * subject.limits.call_s
        is_stuck = not _has_ended(pid, patience_s)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # includes processes that the plugin started and left
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        plugin, hook = case.activity.box.read()
        if status == 0 and (case.folder / _VERDICT).exists():
            return (case.folder / _VERDICT).read_text()
        how, where = how_ended(status), f"in {hook}" if hook else "outside of any hook"
        if is_stuck:
            how = f"gave no result for {patience_s:g} s, last seen"
        elif status == -HUNG:
            how, where = "hung", f"{where} for more than {subject.limits.call_s:g} s"
        written = (case.folder / _OUTPUT).read_bytes()[-_LONGEST:].decode(errors="replace")
        return f"plugin {plugin or subject.name} {how} {where}\n{written}"


def _has_ended(pid: int, patience_s: float) -> bool:
    """Whether a process ends in time; it is not reaped, so its pid still identifies its group."""
    descriptor = os.pidfd_open(pid)
    try:
        return bool(select([descriptor], [], [], patience_s)[0])
    finally:
        os.close(descriptor)


def _judge(check: Check, case: Case) -> NoReturn:
    """The main function of a fork. It exits without cleanup, so that threads and exit handlers can't delay it."""
    ourselves = os.getpid()
    try:
        _confine(case)
        verdict = _verdict(check, case)
        end_children()
        if os.getpid() == ourselves:  # otherwise the plugin forked, and its fork returned here
            (case.folder / _VERDICT).write_text(verdict)
            os._exit(0)
    except BaseException:  # noqa: BLE001  said, whatever it is
        traceback.print_exc()
    finally:
        os._exit(1)


def _confine(case: Case) -> None:
    """Puts the fork into a session of its own, closes all inherited files, and limits the memory it may allocate."""
    os.setsid()
    with (case.folder / _OUTPUT).open("wb") as output:
        os.dup2(output.fileno(), 2)
    for opened in list(Path("/proc/self/fd").iterdir()):
        if opened.name not in ("0", "1", "2"):
            with suppress(OSError):  # one belonged to the listing itself
                os.close(int(opened.name))
    sys.stdout = sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115  for all of its life
    warnings.simplefilter("default")  # regardless of the author's pytest settings
    data_pages = int(Path("/proc/self/statm").read_text().split()[5])
    confine(data_pages * os.sysconf("SC_PAGE_SIZE") + case.subject.limits.memory_bytes)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # the plugin's orphans become this process's children
    case.activity.guard()


def _verdict(check: Check, case: Case) -> str:
    try:
        check.run(case)
    except BaseException as error:  # noqa: BLE001  a plugin's objects may raise anything, anywhere
        return f"{_why(error, case.subject.name)}\n{_trace(error)}"
    return ""


def _why(error: BaseException, plugin: str) -> str:
    if where := _exhausted(error):
        return f"plugin {plugin} ran out of memory: {where}"
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
    """The stack of the plugin's exception; empty if only a promise was broken."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, Broken | PluginError):
        return ""
    return "".join(traceback.format_exception(error))[-_LONGEST:]
