"""Contents of a layer, and the layer as a tar archive. Pure.

The same entries give the same bytes on every machine at any time: owner root, no time stamps, in the given order.
Layers are not compressed: they never leave the machine, and compressors differ between versions.

Symbolic links are only for tests about them. A layer's entry below a link of a lower layer would hide the link, and if
a program's names were links, masking one name would mask all of them.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Folder:
    """A folder; its parents must come before it."""

    path: str
    mode: int = 0o755


@dataclass(frozen=True)
class File:
    """A file; by default everyone may read and execute it."""

    path: str
    content: bytes
    mode: int = 0o755


@dataclass(frozen=True)
class HardLink:
    """Another name of a file that comes before it in the same layer."""

    path: str
    target: str


@dataclass(frozen=True)
class SymbolicLink:
    """A symbolic link, also a dangling one; it replaces a folder of a lower layer."""

    path: str
    target: str
    mode: int = 0o777


Entry = Folder | File | HardLink | SymbolicLink


def archive(entries: Iterable[Entry]) -> bytes:
    whole = io.BytesIO()
    modes: dict[str, int] = {}
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            mode = modes[entry.path] = _mode(entry, modes)
            tar.addfile(_header(entry, mode), io.BytesIO(entry.content if isinstance(entry, File) else b""))
    return whole.getvalue()


def _mode(entry: Entry, modes: Mapping[str, int]) -> int:
    """A hard link repeats its file's mode, because unpacking sets it again."""
    if not isinstance(entry, HardLink):
        return entry.mode
    if entry.target not in modes:
        raise ValueError(f"{entry.path} links to {entry.target}, which does not come before it in the layer")
    return modes[entry.target]


def _header(entry: Entry, mode: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(_inside(entry.path))
    header.mode = mode
    match entry:
        case Folder():
            header.type = tarfile.DIRTYPE
        case File(content=content):
            header.size = len(content)
        case HardLink(target=target):
            header.type, header.linkname = tarfile.LNKTYPE, _inside(target)
        case SymbolicLink(target=target):
            header.type, header.linkname = tarfile.SYMTYPE, target
    return header


def _inside(path: str) -> str:
    """The name in an archive. Only a plain absolute path is accepted, so that no file ends up elsewhere."""
    if not path.startswith("/") or path == "/" or any(part in {"", ".", ".."} for part in path[1:].split("/")):
        raise ValueError(f"{path!r} is no absolute path of a file in an image")
    return path[1:]
