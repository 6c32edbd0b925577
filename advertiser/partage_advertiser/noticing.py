"""Notices between looks that there is something new to see: by the times of the folders in which it shows.

To ask them costs next to nothing, so a second after the driver is to be let go, or kubelet gave a device away or knows
another plugin, a look has told so. What changes elsewhere is found by the next look that is due.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_plugins.vocabulary.places import PAUSE_FOLDER

FOLDERS: Final = (PAUSE_FOLDER, "var/lib/kubelet/device-plugins", "var/lib/kubelet/plugins_registry")
"""Whoever wants a pause puts a file there; kubelet renames its record into the second, and plugins listen in both."""


class FolderWatch:
    """The folders of one node."""

    def __init__(self, root: Path) -> None:
        self._folders = tuple(root / name for name in FOLDERS)
        self._seen = self._times()

    def anything(self) -> bool:
        """Whether one of them changed since this was asked last."""
        before, self._seen = self._seen, self._times()
        return self._seen != before

    def _times(self) -> tuple[int, ...]:
        return tuple(map(_time, self._folders))


def _time(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:  # not there yet, or not to be seen
        return 0
