"""The definition of a check: a function of a case that returns, or raises with the promise that is broken."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import msgspec

from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import Kind, PluginName
from partage_plugins.host.blackbox import BlackBox, RecordedActivity
from partage_plugins.registry.calls import Call
from partage_plugins.registry.entry_points import from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.subject import Has, Subject


@dataclass(frozen=True)
class Case:
    """A subject in the process that checks it."""

    subject: Subject
    activity: TimedActivity
    folder: Path

    def root(self) -> Path:
        """Creates a folder with the subject's files, which stands for a node's `/`."""
        root = Path(mkdtemp(dir=self.folder))
        for name, text in self.subject.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root


@dataclass(frozen=True)
class Check:
    """A function that raises if the subject breaks a promise."""

    run: Callable[[Case], None]
    needs: frozenset[Has]
    """The features that a subject must have for the check to apply."""

    @property
    def promise(self) -> str:
        """What a plugin promises by passing it, in one sentence."""
        return (self.run.__doc__ or "").strip()


def check(*needs: Has) -> Callable[[Callable[[Case], None]], Check]:
    """Makes a function a check of subjects that have all of these features."""
    return lambda run: Check(run, frozenset(needs))


def hold(kept: object, why: str) -> None:
    """Raises `Broken` unless a promise is kept."""
    if not kept:
        raise Broken(why)


@contextmanager
def unchanged(hook: str, what: str, value: object) -> Generator[None]:
    """Verifies that a hook does not modify an argument, since arguments are shared."""
    before = msgspec.json.encode(value)
    yield
    hold(msgspec.json.encode(value) == before, f"{hook} changed {what} that it was given; it is shared")


class OneLife(Registry):
    """A registry that renews no plugin: the first error is the result of the check."""

    def renew(self, name: PluginName) -> None:
        """Called by `SchedulerFramework` while it handles the error."""
        fault = sys.exception()
        raise Broken(f"{fault}; plugin {name} has lost count and would be renewed") from fault


def owned(registry: Registry, subject: Subject) -> AnyKind:
    """The kind that the subject owns."""
    name = Kind(subject.kind or "")
    kind = registry.kind(name)
    if kind is None or registry.owner(name) != subject.name:
        raise Broken(f"plugin {subject.name} does not own kind {name}; does partage_kind return it?")
    return kind


def owns_what_it_should(registry: Registry, subject: Subject) -> None:
    """Raises `Broken` if the subject owns another kind than it states."""
    for kind in registry.kinds:
        if registry.owner(kind.name) == subject.name:
            hold(kind.name == subject.kind, f"it owns kind {kind.name}; the subject says {subject.kind}")


def has_frozen_types(kind: AnyKind) -> None:
    """Raises `Broken` unless all types of a kind are frozen, so that they can be shared."""
    for what in (kind.request, kind.grant, kind.part):
        config: msgspec.structs.StructConfig = what.__struct_config__
        hold(config.frozen, f"{what.__name__} of kind {kind.name} is not frozen")


def loaded(case: Case, hooks: ModuleType, paths: Mapping[str, str]) -> Registry:
    """A registry with these plugins; raises `Broken` if any fails to load."""
    registry = OneLife(hooks)
    report = registry.load(case.activity.watched(from_paths(paths)))
    case.activity.leave()
    for fault in report.faults:
        raise Broken(str(fault)) from fault
    return registry


HUNG = signal.SIGALRM
"""The signal that ends a process whose plugin hangs."""


class Broken(Exception):
    """A broken promise, with the reason."""


class TimedActivity(RecordedActivity):
    """An activity that ends the process when a call takes too long."""

    def __init__(self, box: BlackBox, *, call_s: float) -> None:
        super().__init__(box)
        self._call_s = call_s

    def guard(self) -> None:
        """Arms the guard in this process."""
        signal.signal(HUNG, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [HUNG])
        faulthandler.enable(2)
        faulthandler.register(HUNG, 2, chain=True)  # prints the stack, then dies by the default action

    def enter(self, call: Call) -> None:
        super().enter(call)
        signal.setitimer(signal.ITIMER_REAL, self._call_s)

    def leave(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        super().leave()
