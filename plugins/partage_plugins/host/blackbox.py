"""A page that parent and child share: which plugin and hook the child is in, readable after the child is dead.

The child writes it before and after each call; the parent reads it when the child has died or was killed, and never
trusts it for more than a message.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from partage_plugins.registry.calls import Activity, Call
from partage_plugins.registry.entry_points import Candidate

_SIZE: Final = 256
_NOBODY: Final = b"\0"


def create() -> int:
    """A descriptor of a new, empty page; the caller passes it to the child and closes it."""
    descriptor = os.memfd_create("partage-blackbox")
    os.truncate(descriptor, _SIZE)
    return descriptor


class BlackBox:
    """One page, as either side sees it."""

    def __init__(self, descriptor: int = -1) -> None:
        """Without a descriptor it is shared with the copies that this process makes of itself."""
        self._page = mmap.mmap(descriptor, _SIZE)

    def note(self, plugin: str, hook: str) -> None:
        """Says who is about to run."""
        text = f"{plugin}\n{hook}".encode()[: _SIZE - 1] + _NOBODY
        self._page[: len(text)] = text

    def clear(self) -> None:
        """Says that no plugin runs."""
        self._page[:1] = _NOBODY

    def read(self) -> tuple[str, str]:
        """Plugin and hook that were running; empty where none was."""
        text = self._page[:_SIZE].split(_NOBODY, 1)[0].decode(errors="replace")
        plugin, _, hook = text.partition("\n")
        return plugin, hook

    def close(self) -> None:
        """Lets go of the page."""
        self._page.close()


class RecordedActivity(Activity):
    """An activity that is written to a black box."""

    def __init__(self, box: BlackBox) -> None:
        super().__init__()
        self.box = box

    def begin(self, plugin: str, hook: str) -> None:
        """Code of a plugin begins to run."""
        self.box.note(plugin, hook)

    def end(self) -> None:
        """No plugin runs any more."""
        self.box.clear()

    def enter(self, call: Call) -> None:
        self.begin(call.plugin, call.hook)

    def leave(self) -> None:
        self.end()

    def watched(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """The candidates, each in the box from its import to the import of the next."""
        for candidate in candidates:
            yield replace(candidate, load=partial(self._load, candidate))

    def _load(self, candidate: Candidate) -> object:
        self.begin(candidate.name, "import")
        return candidate.load()
