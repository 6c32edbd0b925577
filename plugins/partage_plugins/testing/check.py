"""What a check is: a function of a case that returns, or says which promise is broken."""

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

from partage_plugins.host.blackbox import BlackBox, RecordedActivity
from partage_plugins.registry.entry_points import from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.subject import Has, Subject
from partage_plugins.vocabulary.kinds import AnyKind
from partage_plugins.vocabulary.names import Kind, PluginName


@dataclass(frozen=True)
class Case:
    """A subject in the process that checks it."""

    subject: Subject
    activity: TimedActivity
    folder: Path

    def root(self) -> Path:
        """A new folder with the subject's files, to stand for a node's `/`."""
        root = Path(mkdtemp(dir=self.folder))
        for name, text in self.subject.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root


@dataclass(frozen=True)
class Check:
    """A function that raises where the subject breaks a promise."""

    run: Callable[[Case], None]
    needs: frozenset[Has]
    """What a subject must have that it applies to."""

    @property
    def promise(self) -> str:
        """What a plugin promises by passing it, in one sentence."""
        return (self.run.__doc__ or "").strip()


def check(*needs: Has) -> Callable[[Callable[[Case], None]], Check]:
    """Makes a function a check of those subjects that have all of this."""
    return lambda run: Check(run, frozenset(needs))


def hold(kept: object, why: str) -> None:
    """Goes on if a promise is kept."""
    if not kept:
        raise Broken(why)


@contextmanager
def unchanged(hook: str, what: str, value: object) -> Generator[None]:
    """Watches a value that a hook is given: it is shared and must stay as it is."""
    before = msgspec.json.encode(value)
    yield
    hold(msgspec.json.encode(value) == before, f"{hook} changed {what} that it was given; it is shared")


class OneLife(Registry):
    """A registry that renews no plugin: here the first fault is the answer."""

    def renew(self, name: PluginName) -> None:
        """Called by the façade while it looks at the fault."""
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
    """Goes on if the subject owns no other kind than it says."""
    for kind in registry.kinds:
        if registry.owner(kind.name) == subject.name:
            hold(kind.name == subject.kind, f"it owns kind {kind.name}; the subject says {subject.kind}")


def has_frozen_types(kind: AnyKind) -> None:
    """Goes on if all that is said of a kind can be shared."""
    for what in (kind.request, kind.grant, kind.part):
        config: msgspec.structs.StructConfig = what.__struct_config__
        hold(config.frozen, f"{what.__name__} of kind {kind.name} is not frozen")


def loaded(case: Case, hooks: ModuleType, paths: Mapping[str, str]) -> Registry:
    """A registry with these plugins; broken if any does not load."""
    registry = OneLife(hooks)
    report = registry.load(case.activity.watched(from_paths(paths)))
    case.activity.end()
    for fault in report.faults:
        raise Broken(str(fault)) from fault
    return registry


HUNG = signal.SIGALRM
"""By this signal dies a process whose plugin hangs."""


class Broken(Exception):
    """A promise is broken, and how."""


class TimedActivity(RecordedActivity):
    """An activity that ends the process when a call takes too long."""

    def __init__(self, box: BlackBox, *, call_s: float) -> None:
        super().__init__(box)
        self._call_s = call_s

    def guard(self) -> None:
        """From now on, in this process."""
        signal.signal(HUNG, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [HUNG])
        faulthandler.enable(2)
        faulthandler.register(HUNG, 2, chain=True)  # shows where, then dies of the default action

    def begin(self, plugin: str, hook: str) -> None:
        super().begin(plugin, hook)
        signal.setitimer(signal.ITIMER_REAL, self._call_s)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        super().end()
