"""A memory page shared by parent and child that names the running plugin and hook, readable after the child's death.

The child writes it before and after each call. The parent reads it after the child has died or was killed, and uses the
content only in messages.
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
    """Creates an empty page and returns its descriptor; the caller passes it to the child and closes it."""
    descriptor = os.memfd_create("partage-blackbox")
    os.truncate(descriptor, _SIZE)
    return descriptor


class BlackBox:
    """The page, mapped by either process."""

    def __init__(self, descriptor: int = -1) -> None:
        """Without a descriptor, the page is shared with processes that this one forks."""
        self._page = mmap.mmap(descriptor, _SIZE)

    def note(self, plugin: str, hook: str) -> None:
        """Records the plugin and hook that are about to run."""
        text = f"{plugin}\n{hook}".encode()[: _SIZE - 1] + _NOBODY
        self._page[: len(text)] = text

    def clear(self) -> None:
        """Records that no plugin runs."""
        self._page[:1] = _NOBODY

    def read(self) -> tuple[str, str]:
        """The running plugin and hook; empty if there is none."""
        text = self._page[:_SIZE].split(_NOBODY, 1)[0].decode(errors="replace")
        plugin, _, hook = text.partition("\n")
        return plugin, hook

    def close(self) -> None:
        """Unmaps the page."""
        self._page.close()


class RecordedActivity(Activity):
    """An activity that is recorded in a black box."""

    def __init__(self, box: BlackBox) -> None:
        super().__init__()
        self.box = box

    def enter(self, call: Call) -> None:
        self.box.note(call.plugin, call.hook)

    def leave(self) -> None:
        self.box.clear()

    def watched(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """The candidates, each recorded from its import to the import of the next."""
        for candidate in candidates:
            yield replace(candidate, load=partial(self._load, candidate))

    def _load(self, candidate: Candidate) -> object:
        self.enter(Call(candidate.name, "import", candidate.load, self))
        return candidate.load()
