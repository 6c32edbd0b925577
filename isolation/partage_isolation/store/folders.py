"""The container's view of the broker: a folder with the socket, the preload file, and a place for the library.

Creating it is idempotent, and completes what a killed broker left half-made. The parent folder is root's alone, so no
other user can put anything there; inside the container everything is read-only. A folder of another owner, or a full
file system, raises `NoFolder`, and the container does not start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_base.listener import listen
from partage_isolation.errors import NoFolder
from partage_plugins.api.claims import ClaimUid
from partage_plugins.api.containers import Mount
from partage_plugins.api.names import ContainerKey

PARENT: Final = "run/partage/containers"
SOCKET: Final = "broker"
PRELOAD: Final = "preload"
LIBRARY: Final = "lib"
INSIDE: Final = "/run/partage"
"""The folder's path in the container."""
CLAIMS_INSIDE: Final = f"{INSIDE}/claims"
"""The parent of claims' folders, each named by its uid, so that none covers another."""
PRELOAD_INSIDE: Final = "/etc/ld.so.preload"
NIX_PRELOAD_INSIDE: Final = "/etc/ld-nix.so.preload"
"""The file that nixpkgs's glibc reads instead."""
OBJECTS: Final = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1")
PRELOAD_TEXT: Final = "".join(f"{INSIDE}/{LIBRARY}/{name}\n" for name in OBJECTS)
MOVING: Final = "moving"
"""A file that tells the library, before its first call, that this container's memory is movable."""
_BACKLOG: Final = 256


def inside_of(claim: ClaimUid) -> str:
    """Path of a claim's folder in each of its containers."""
    return f"{CLAIMS_INSIDE}/{claim}"


_READABLE: Final = 0o644


class Folders:
    def __init__(self, root: Path) -> None:
        self.parent = root / PARENT

    def make(self, key: ContainerKey, *, moves: bool = False) -> socket.socket:
        """Create the complete folder and its listening socket. Raises `NoFolder`."""
        folder = self.parent / key
        try:
            self.make_parent()
            _own_folder(folder, 0o755)
            _own_folder(folder / LIBRARY, 0o755)
            _write_preload(folder)
            if moves:
                write_whole(folder / MOVING, b"", mode=_READABLE)
            return listen(folder / SOCKET, kind=socket.SOCK_SEQPACKET, mode=0o666, backlog=_BACKLOG)
        except OSError as error:
            raise NoFolder(
                f"cannot make {folder} for a container: {error.strerror or error}; make room there, or remove what is "
                "in the way"
            ) from error

    def make_parent(self) -> None:
        self.parent.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _own_folder(self.parent, 0o700)

    def remove(self, key: ContainerKey) -> None:
        """Remove the folder of a container that is gone. What can't be removed now stays until the next start."""
        shutil.rmtree(self.parent / key, ignore_errors=True)

    def names(self) -> frozenset[str]:
        with contextlib.suppress(FileNotFoundError):
            return frozenset(os.listdir(self.parent))  # noqa: PTH208  names alone
        return frozenset()

    def mounts(self, key: ContainerKey, library: str, claim: ClaimUid | None = None) -> tuple[Mount, ...]:
        """Mounts for the container, all read-only: the folder first, since the library is mounted inside it.

        For a claim, each file of the library is mounted at its own path: a volume of the container can be mounted
        inside the broker's folder, but not on a file.
        """
        folder = self.parent / key
        preload = str(folder / PRELOAD)
        preloads = (
            Mount(container_path=PRELOAD_INSIDE, host_path=preload),
            Mount(container_path=NIX_PRELOAD_INSIDE, host_path=preload),
        )
        inside = f"{INSIDE}/{LIBRARY}"
        if claim is None:
            own, whole = str(folder), Mount(container_path=inside, host_path=library)
            return Mount(container_path=INSIDE, host_path=own), whole, *preloads
        files = (Mount(container_path=f"{inside}/{name}", host_path=f"{library}/{name}") for name in OBJECTS)
        return Mount(container_path=inside_of(claim), host_path=str(folder)), *files, *preloads


def _own_folder(folder: Path, mode: int) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=mode)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(20, "something that is no folder is there")
    if found.st_uid != os.geteuid():
        raise OSError(1, f"it belongs to user {found.st_uid}, not to the broker's")
    if stat.S_IMODE(found.st_mode) != mode:
        folder.chmod(mode)


def _write_preload(folder: Path) -> None:
    """Write the complete file, or keep it where it is right: a container may have it mounted."""
    path, text = folder / PRELOAD, PRELOAD_TEXT.encode()
    with contextlib.suppress(OSError):
        if path.read_bytes() == text and stat.S_IMODE(path.lstat().st_mode) == _READABLE:
            return
    write_whole(path, text, mode=_READABLE)
