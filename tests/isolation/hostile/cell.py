"""A process with a container's mounts: those that the broker asks for, read-only, in a mount namespace of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.isolation.place import Container

_ENTER: Final = """
set -e
mount --make-rprivate /
mount -t overlay -o lowerdir="$1":/etc none /etc
mount -t tmpfs none /run
mkdir /run/partage
shift
while [ "$1" != -- ]; do
    mount --bind "$1" "$2"
    mount -o remount,bind,ro "$2"
    shift 2
done
shift
exec "$@"
"""


def in_cell(container: Container, folder: Path, argv: Sequence[str]) -> list[str]:
    """The command that runs `argv` there; `folder` holds the files of /etc over which others are mounted."""
    folder.mkdir(exist_ok=True)
    for name in ("ld.so.preload", "ld-nix.so.preload"):
        (folder / name).touch()
    mounts = [word for mount in container.prepared.mounts for word in (mount.host_path, mount.container_path)]
    return ["unshare", "--mount", "sh", "-c", _ENTER, "cell", str(folder), *mounts, "--", *argv]
