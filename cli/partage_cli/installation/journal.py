"""The journal of changes to this node, which survives every crash: the steps, and the facts to undo each.

A step first plans: it returns its changes, and the facts that its other half needs. It is recorded with them before
anything is changed, and again when it is done. A run that finds a step begun repeats it with those facts, since the
host is half changed by then. Doing a step twice, or half and then whole, has the same result as once; so has undoing
it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import msgspec

from partage_base.files import write_whole
from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.installation.errors import AnotherWorks, JournalWrong
from partage_cli.installation.host import Host
from partage_cli.installation.places import JOURNAL, LOCK

F = TypeVar("F")
StepName = Literal["look", "unpack", "units", "save", "arm", "endpoint", "confirm", "upgrade", "uninstall"]
"""In order; the last two are removed from the journal at their end."""
_PRIVATE: Final = 0o700


@dataclass(frozen=True)
class Change:
    """One change of a step, for people."""

    verb: str
    what: str

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"


class NoFacts(msgspec.Struct, frozen=True):
    """The facts of a step that needs none to be undone."""


@dataclass(frozen=True)
class Plan(Generic[F]):
    changes: tuple[Change, ...]
    """Empty: everything is as it should be, and the step only verifies that."""
    facts: F
    """For the journal: what `do` and `undo` must know."""


class Step(Protocol[F]):
    @property
    def name(self) -> StepName: ...

    @property
    def facts_type(self) -> type[F]: ...

    def plan(self, host: Host) -> Plan[F]:
        """Changes nothing; raises `InstallationError` if the step is not possible."""
        ...

    def do(self, host: Host, facts: F) -> None: ...

    def undo(self, host: Host, facts: F) -> None: ...


class Entry(msgspec.Struct, frozen=True):
    """A step's progress, and the facts that its other half needs."""

    state: Literal["begun", "done"]
    facts: msgspec.Raw = msgspec.Raw(b"{}")


class _Written(msgspec.Struct, frozen=True):
    v: Literal[1] = 1
    version: str = ""
    """Version of the installed tree."""
    steps: Mapping[str, Entry] = {}


class Journal:
    """Read once, written whole with every change. Opened by `kept`, or by `read` for reading only."""

    def __init__(self, path: Path, written: _Written) -> None:
        self._path, self._written = path, written

    @property
    def version(self) -> str:
        return self._written.version

    @property
    def states(self) -> Mapping[str, str]:
        """The state of every step that was begun and not undone."""
        return {name: entry.state for name, entry in self._written.steps.items()}

    def is_done(self, step: StepName) -> bool:
        entry = self._written.steps.get(step)
        return entry is not None and entry.state == "done"

    def facts(self, step: StepName, type_: type[F]) -> F | None:
        """A step's facts; None if it was not begun. Raises `JournalWrong`."""
        entry = self._written.steps.get(step)
        if entry is None:
            return None
        try:
            return msgspec.json.decode(entry.facts, type=type_)
        except msgspec.MsgspecError as error:
            raise JournalWrong(
                f"{self._path}: step {step}: {error}; another version wrote it, so use that one"
            ) from None

    def begin(self, step: StepName, facts: object) -> None:
        self._put(step, "begun", facts)

    def done(self, step: StepName, facts: object) -> None:
        self._put(step, "done", facts)

    def forget(self, step: StepName) -> None:
        """Removes a step that was undone or was never done."""
        steps = {name: entry for name, entry in self._written.steps.items() if name != step}
        self._write(msgspec.structs.replace(self._written, steps=steps))

    def take_version(self, version: str) -> None:
        """Records the version of the tree that is in force from now on."""
        self._write(msgspec.structs.replace(self._written, version=version))

    def _put(self, step: StepName, state: Literal["begun", "done"], facts: object) -> None:
        entry = Entry(state, msgspec.Raw(msgspec.json.encode(facts)))
        self._write(msgspec.structs.replace(self._written, steps={**self._written.steps, step: entry}))

    def _write(self, written: _Written) -> None:
        write_whole(self._path, msgspec.json.format(msgspec.json.encode(written)) + b"\n", synced=True)
        self._written = written


def carry_out(steps: Sequence[Step[Any]], host: Host, journal: Journal, *, again: bool = False) -> None:
    """Runs steps that are not done, or all of them with `again`; on an error the failed step stays begun."""
    for step in steps:
        is_done = journal.is_done(step.name)
        if is_done and not again:
            continue
        facts = None if is_done else journal.facts(step.name, step.facts_type)
        if facts is None:
            facts = step.plan(host).facts
            journal.begin(step.name, facts)
        step.do(host, facts)
        journal.done(step.name, facts)


def take_back(steps: Sequence[Step[Any]], host: Host, journal: Journal) -> None:
    """Undoes steps that were begun, the last one first."""
    for step in reversed(steps):
        facts = journal.facts(step.name, step.facts_type)
        if facts is not None:
            step.undo(host, facts)
            journal.forget(step.name)


def read(root: Path) -> Journal:
    """Opens the journal for reading; raises `JournalWrong`."""
    path = root / JOURNAL
    text = text_of(path)
    if isinstance(text, Unseen):
        if not text.is_missing:
            raise JournalWrong(str(text))
        return Journal(path, _Written())
    try:
        return Journal(path, msgspec.json.decode(text, type=_Written))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise JournalWrong(f"{path}: {error}; another version wrote it, so use that one") from None


@contextmanager
def kept(root: Path) -> Generator[Journal]:
    """Opens and locks the journal for changing the node; raises `AnotherWorks` and `JournalWrong`."""
    lock = root / LOCK
    lock.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnotherWorks(f"another command changes this node now: it holds {lock}; wait for it") from None
        yield read(root)
    finally:
        os.close(descriptor)
