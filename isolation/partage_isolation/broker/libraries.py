"""Which preload library new containers get: the one that was installed last. A running one keeps what it has."""

from __future__ import annotations

from pathlib import Path

from partage_isolation.broker.folders import OBJECTS
from partage_isolation.errors import NoLibrary


def library_for_new(folder: Path) -> str:
    """The folder of that version; raises `NoLibrary`."""
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".") and _is_whole(path)]
        newest = max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)
    except OSError:
        newest = None
    if newest is None:
        raise NoLibrary(
            f"no preload library is installed in {folder}, and without it no limit would hold; "
            "install it with `partage-broker --install-library`"
        )
    return str(newest)


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in OBJECTS)
