"""The node's files as `deciding.placing` asks for them, and what tells one small file of ours from the next."""

from __future__ import annotations

import os
import stat

from partage_crishim.rules.placement import PathTarget


class NodeFiles:
    """The real ones. Plugins name paths as the runtime sees them, so nothing is put before them."""

    def look(self, path: str) -> PathTarget | None:
        """What is there with all links followed."""
        try:
            real = os.path.realpath(path, strict=True)
            mode = os.stat(real).st_mode  # noqa: PTH116  a path that was just resolved
        except (OSError, ValueError):
            return None
        return PathTarget(real, "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "other")


Facts = tuple[int, int]
"""What another file in the same place differs by, where every writer puts a whole new one."""


def facts_of(status: os.stat_result) -> Facts:
    """Of a file that was written whole."""
    return status.st_ino, status.st_mtime_ns


def names_in(folder: str) -> tuple[str, ...]:
    """The files of a folder, without those that are being written; none where there is no folder."""
    try:
        with os.scandir(folder) as entries:
            return tuple(entry.name for entry in entries if not entry.name.startswith("."))
    except FileNotFoundError:
        return ()
