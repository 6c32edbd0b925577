"""The keys that verify now, for a process that runs for months.

`current()` says what the folder says at this moment and reads files only when something about them changed: a look at
the folder and at every key's `stat` is cheap enough for every container that is created. No thread, no inotify.

*What can't be read does not verify.* A removed key stops at once, and so does a file that went bad. If the folder
itself can't be read (missing, no permission, an I/O error), there is no key at all, the fault says why, and the next
call tries again. The old set is never kept: nobody could say which of its keys was withdrawn meanwhile. The price is
small, since running containers are not asked and kubelet tries a refused creation again.

A file that changes twice within the granularity of timestamps could look unchanged. So what is younger than
`_SETTLED_NS` is read again at every call, until it is old enough to be told apart.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.keyring.layout import PRIVATE_SUFFIX, PUBLIC_SUFFIX
from partage_base.keyring.loading import LoadedKeys, load_public_keys

_SETTLED_NS: Final = 2_000_000_000  # the coarsest timestamps of a common file system are two seconds apart
_TRIES: Final = 3  # against a folder that is exchanged while it is read

Facts = tuple[object, ...]


class Keyring:
    """The public keys of a folder as they are now. Its folder should be local: `current` waits for the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts: Facts | None = None
        self._loaded = LoadedKeys({})

    def current(self) -> LoadedKeys:
        """The keys that verify now; the same object as long as nothing changed, so faults need telling only once."""
        look = _look(self._folder)
        if not look.settled or look.facts != self._facts:
            self._reload(look)
        return self._loaded

    def _reload(self, before: _Look) -> None:
        loaded, after = load_public_keys(self._folder), _look(self._folder)
        for _ in range(_TRIES):
            if after.facts == before.facts:
                break
            before, loaded, after = after, load_public_keys(self._folder), _look(self._folder)
        self._facts = after.facts if before.settled and after.facts == before.facts else None
        if not _alike(loaded, self._loaded):
            self._loaded = loaded


@dataclass(frozen=True)
class _Look:
    facts: Facts | None
    """What changes when any key does; None where nobody can tell."""
    settled: bool
    """Whether every later change will show."""


def _look(folder: Path) -> _Look:
    now = time.time_ns()
    try:
        with os.scandir(folder) as entries:
            keys = [entry for entry in entries if entry.name.endswith((PUBLIC_SUFFIX, PRIVATE_SUFFIX))]
        keys.sort(key=lambda entry: entry.name)
        statuses = [folder.stat(), *(entry.stat() for entry in keys)]
    except OSError:
        return _Look(None, settled=False)
    newest = max(status.st_ctime_ns for status in statuses)
    names = (entry.name for entry in keys)
    return _Look((*names, *map(_facts, statuses)), settled=newest < now - _SETTLED_NS)


def _facts(status: os.stat_result) -> Facts:
    owner = (status.st_mode, status.st_uid, status.st_gid)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, *owner)


def _alike(one: LoadedKeys, other: LoadedKeys) -> bool:
    """An id is a digest of its key, so equal ids are equal keys."""
    return one.keys.keys() == other.keys.keys() and list(map(str, one.faults)) == list(map(str, other.faults))
