"""What a check is: a function of a case that returns, or says which promise is broken."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import msgspec

from partage_plugins.registry.finding import Candidate, from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.subject import Subject
from partage_plugins.testing.watching import Broken, TimedActivity
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
    """A registry that makes no plugin anew: here the first fault is the answer."""

    def renew(self, name: PluginName) -> None:
        """Called by the façade while it looks at the fault."""
        fault = sys.exception()
        raise Broken(f"{fault}; plugin {name} has lost count and would be made anew") from fault


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
