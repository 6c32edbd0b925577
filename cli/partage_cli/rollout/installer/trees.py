"""Copies a version's tree to the host: whole and checked, or not at all.

The copy is made beside its place and renamed when every file of the MANIFEST is there with the right bytes and on the
disk. What stands at the place already is kept if it is right. Before anything is written there must be room for all of
it and some more: a node whose disk is full loses its pods.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from partage_base.files import UNFINISHED
from partage_plugins.errors import PartageError

MANIFEST: Final = "MANIFEST"
VERSION_FILE: Final = "VERSION"
TREES: Final = Path("opt/partage")
"""Below the host's root; each version is a folder in it."""
SPARE_BYTES: Final = 256 << 20
"""So much stays free on the host."""
MOST_MANIFEST_BYTES: Final = 8 << 20
_LINE: Final = re.compile(r"(?P<mode>0[0-7]{3}) (?P<digest>[0-9a-f]{64}) (?P<path>.+)")
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,100}")
_PIECE_BYTES: Final = 1 << 20


class TreeRefused(PartageError):
    """A tree is not what its MANIFEST says, or there is no room for it."""


class TreeFile(msgspec.Struct, frozen=True):
    path: str
    mode: int
    digest: str


def version_of(tree: Path) -> str:
    """The version of a tree, which is also its folder's name on hosts; raises `TreeRefused`."""
    try:
        version = (tree / VERSION_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TreeRefused(f"{tree / VERSION_FILE} can't be read: {error}; is {tree} a tree of `make bundle`?") from None
    if not _VERSION.fullmatch(version):
        raise TreeRefused(f"{tree / VERSION_FILE} says {version[:100]!r}, which is no version")
    return version


def manifest_of(tree: Path) -> tuple[TreeFile, ...]:
    """What a tree consists of; raises `TreeRefused`."""
    path = tree / MANIFEST
    try:
        with path.open("rb") as file:
            content = file.read(MOST_MANIFEST_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TreeRefused(f"{path} can't be read: {error}; is {tree} a tree of `make bundle`?") from None
    if len(content) > MOST_MANIFEST_BYTES:
        raise TreeRefused(f"{path} is larger than {MOST_MANIFEST_BYTES} bytes, which no tree of ours needs")
    return tuple(_file(path, line) for line in text.splitlines())


def delivered(tree: Path, host: Path) -> Path:
    """The tree on the host, copied there unless it is there; raises `TreeRefused` or `OSError`. Blocks for seconds."""
    target = host / TREES / version_of(tree)
    clear(host)
    files = manifest_of(tree)
    if _is_same(tree, target) and not any(_faults(target, files)):
        return target
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    _require_room(tree, files, target.parent)
    unfinished = target.parent / f"{UNFINISHED}{secrets.token_hex(8)}"
    try:
        _copied(tree, files, unfinished)
        _put(unfinished, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def clear(host: Path) -> None:
    """Takes away what copies that were killed have left; there is one installer on a host."""
    for left in (host / TREES).glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)


def _file(manifest: Path, line: str) -> TreeFile:
    found = _LINE.fullmatch(line)
    path = PurePosixPath(found["path"]) if found else PurePosixPath("/")
    if found is None or path.is_absolute() or ".." in path.parts:
        raise TreeRefused(f"{manifest} has a line that is none of a MANIFEST: {line[:100]!r}")
    return TreeFile(str(path), int(found["mode"], 8), found["digest"])


def _is_same(tree: Path, target: Path) -> bool:
    try:
        return (target / MANIFEST).read_bytes() == (tree / MANIFEST).read_bytes()
    except OSError:
        return False


def _faults(tree: Path, files: tuple[TreeFile, ...]) -> Iterator[str]:
    """What is missing or other than it should be, one by one."""
    for file in files:
        try:
            path = tree / file.path
            if path.is_symlink() or path.stat().st_mode & 0o7777 != file.mode or _digest(path) != file.digest:
                yield file.path
        except OSError:
            yield file.path


def _require_room(tree: Path, files: tuple[TreeFile, ...], folder: Path) -> None:
    needed = sum((tree / file.path).stat().st_size for file in files) + SPARE_BYTES
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < needed:
        raise TreeRefused(
            f"no room for this version on the host: {_mib(needed)} must be free at /{TREES}, and {_mib(free)} are; "
            "nothing was changed; make room"
        )


def _copied(tree: Path, files: tuple[TreeFile, ...], target: Path) -> None:
    target.mkdir(mode=0o755)
    for file in files:
        path = target / file.path
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if (digest := _copy(tree / file.path, path, file.mode)) != file.digest:
            raise TreeRefused(f"{tree / file.path} is not what {MANIFEST} says: its SHA-256 is {digest}")
    _copy(tree / MANIFEST, target / MANIFEST, 0o644)
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o755)  # whatever the umask
        _sync(Path(folder))


def _put(unfinished: Path, target: Path) -> None:
    """At its place, in two steps where something that is wrong stands there: a folder can't be replaced in one."""
    old = target.parent / f"{UNFINISHED}{secrets.token_hex(8)}"
    if target.is_symlink() or target.exists():
        target.rename(old)
    unfinished.rename(target)
    _sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _copy(source: Path, target: Path, mode: int) -> str:
    """On the disk when this returns; the digest of what was copied."""
    digest = hashlib.sha256()
    with source.open("rb") as reader, target.open("xb") as writer:
        while piece := reader.read(_PIECE_BYTES):
            digest.update(piece)
            writer.write(piece)
        writer.flush()
        os.fchmod(writer.fileno(), mode)
        os.fsync(writer.fileno())
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB"
