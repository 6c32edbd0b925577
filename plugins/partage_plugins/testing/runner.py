"""Runs the checks of a subject in child processes; whatever a plugin does there, this returns.

A child that dies or hangs fails the check that it was in, and a new child goes on with the rest. A hook that has ended
several children is not asked again; a plugin that ended several without being asked anything is given up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from partage_plugins.host import blackbox
from partage_plugins.host.child import EXIT_OUT_OF_MEMORY
from partage_plugins.process_group import ProcessGroup
from partage_plugins.testing.catalogue import checks_of
from partage_plugins.testing.check import HUNG
from partage_plugins.testing.report import Question, Report, Result
from partage_plugins.testing.subject import Subject

_COMMAND: Final = (sys.executable, "-P", "-m", "partage_plugins.testing.child")
_MOST_DEATHS: Final = 2  # of one hook
_CALLS_A_CHECK: Final = 20  # a check that gives no result for so many deadlines hangs outside of any hook
_LOOK_S: Final = 0.01
_LONGEST_TRACE: Final = 8000
_THREADS: Final = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run(subject: Subject, only: Collection[str] = ()) -> Report:
    """What comes of the checks that apply to the subject: of all, or of those that `only` names."""
    waiting = [name for name in checks_of(subject) if not only or name in only]
    results: list[Result] = []
    deaths: Counter[tuple[str, str]] = Counter()
    with TemporaryDirectory(prefix="partage-kit-", ignore_cleanup_errors=True) as folder:
        while waiting:
            deadly = tuple(hook for hook, times in deaths.items() if times >= _MOST_DEATHS)
            child = _CheckProcess(subject, tuple(waiting), deadly, Path(folder))
            answered, death = child.answers()
            if len(answered) < len(waiting) and death is not None:
                answered.append(Result(check=waiting[len(answered)], passed=False, why=death.why, trace=death.trace))
                deaths[death.plugin, death.hook] += 1
            results += answered
            del waiting[: len(answered)]
            if death is not None and not death.hook and deaths[death.plugin, death.hook] >= _MOST_DEATHS:
                results += [Result(check=name, passed=False, why=f"was not run: {death.why}") for name in waiting]
                break
    return Report(tuple(results))


class _Death(msgspec.Struct, frozen=True):
    plugin: str
    hook: str
    why: str
    trace: str


class _CheckProcess:
    """One child, from its start to its end."""

    def __init__(
        self, subject: Subject, checks: tuple[str, ...], deadly: tuple[tuple[str, str], ...], folder: Path
    ) -> None:
        self._subject, self._checks = subject, checks
        self._results, self._output = folder / f"results-{len(checks)}", folder / f"output-{len(checks)}"
        self._results.touch()
        descriptor = blackbox.create()
        question = folder / f"question-{len(checks)}"
        question.write_bytes(
            msgspec.json.encode(
                Question(
                    subject=subject,
                    checks=checks,
                    deadly=deadly,
                    box=descriptor,
                    folder=str(folder),
                    results=str(self._results),
                )
            )
        )
        try:
            self._group = ProcessGroup(self._begun(question, descriptor))
            self._box = blackbox.BlackBox(descriptor)
        finally:
            os.close(descriptor)

    def answers(self) -> tuple[list[Result], _Death | None]:
        """The results that it gave, and how it died, if it did in the middle of a check."""
        try:
            stuck = self._waited()
        finally:
            self._group.kill()  # also what its plugins started and left
            how = self._group.reap() or ""
            plugin, hook = self._box.read()
            self._box.close()
        given = self._given()
        if given and self._group.status == EXIT_OUT_OF_MEMORY and not hook:  # the last result says so
            return given, None
        return given, self._death(plugin, hook, self._how(how, stuck=stuck))

    def _given(self) -> list[Result]:
        """The results up to the first that the child did not write: plugins can write to its files, too."""
        given: list[Result] = []
        for name, line in zip(self._checks, self._results.read_bytes().splitlines(), strict=False):
            try:
                result = msgspec.json.decode(line, type=Result)
            except msgspec.MsgspecError:
                break
            if result.check != name:
                break
            given.append(result)
        return given

    def _begun(self, question: Path, descriptor: int) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        with self._output.open("wb") as output:
            return subprocess.Popen(  # noqa: S603  our own module
                [*_COMMAND, str(question)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(descriptor,),
                env={**os.environ, **_THREADS, "PYTHONPATH": path},
                start_new_session=True,
            )

    def _waited(self) -> bool:
        """Whether the child got stuck outside of any hook. It is dead or stuck now, but not reaped."""
        patience_s = self._subject.limits.call_s * _CALLS_A_CHECK
        size, since = 0, time.monotonic()
        while not self._group.has_exited():
            time.sleep(_LOOK_S)
            if (now := self._results.stat().st_size) != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > patience_s:
                return True
        return False

    def _how(self, how: str, *, stuck: bool) -> str:
        if stuck:
            return f"gave no result for {self._subject.limits.call_s * _CALLS_A_CHECK:g} s, last seen"
        return "hung" if self._group.status == -HUNG else how

    def _death(self, plugin: str, hook: str, how: str) -> _Death:
        where = f"in {hook}" if hook else "outside of any hook"
        duration = f" for more than {self._subject.limits.call_s:g} s" if how == "hung" else ""
        why = f"plugin {plugin or self._subject.name} {how} {where}{duration}"
        output = self._output.read_bytes()[-_LONGEST_TRACE:].decode(errors="replace")
        return _Death(plugin, hook, why, output)
