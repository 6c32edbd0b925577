"""What a check is: a function of a case that returns, or says which promise is broken."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import msgspec

from partage_plugins.host.blackbox import BlackBox, RecordedActivity
from partage_plugins.registry.calls import Call
from partage_plugins.registry.entry_points import Candidate, from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.subject import Subject
from partage_plugins.vocabulary.names import PluginName


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


Check = Callable[[Case], None]


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


def loaded(case: Case, hooks: ModuleType, paths: Mapping[str, str]) -> Registry:
    """A registry with these plugins; broken if any does not load."""
    registry = OneLife(hooks)
    report = registry.load(_noted(from_paths(paths), case.activity))
    case.activity.end()
    for fault in report.faults:
        raise Broken(str(fault)) from fault
    return registry


def _noted(candidates: Iterable[Candidate], activity: TimedActivity) -> Iterator[Candidate]:
    """The candidates, each of which is watched from its import to the import of the next."""
    for candidate in candidates:
        yield replace(candidate, load=partial(_load, candidate, activity))


def _load(candidate: Candidate, activity: TimedActivity) -> object:
    activity.begin(candidate.name, "import")
    return candidate.load()


HUNG = signal.SIGALRM
"""By this signal dies a process whose plugin hangs."""


class Broken(Exception):
    """A promise is broken, and how."""


class TimedActivity(RecordedActivity):
    """An activity that ends the process when a call takes too long."""

    def __init__(self, box: BlackBox, *, call_s: float, deadly: frozenset[tuple[str, str]]) -> None:
        """`deadly` are plugins with hooks that ended earlier processes: they are not called again."""
        super().__init__(box)
        self._call_s = call_s
        self._deadly = deadly
        self.counts: dict[str, int] = {}
        signal.signal(HUNG, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [HUNG])
        faulthandler.enable()
        faulthandler.register(HUNG, chain=True)  # shows where, then dies of the default action

    def begin(self, plugin: str, hook: str) -> None:
        """A plugin's code begins to run."""
        if (plugin, hook) in self._deadly:
            raise Broken(f"plugin {plugin} ended this process in {hook} in the checks above and was not asked again")
        self.counts[hook] = self.counts.get(hook, 0) + 1
        self._box.note(plugin, hook)
        signal.setitimer(signal.ITIMER_REAL, self._call_s)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._box.clear()

    def enter(self, call: Call) -> None:
        self.begin(call.plugin, call.hook)

    def leave(self) -> None:
        self.end()
