"""The installed tree of programs: verified file by file, put in place whole, and selected by one link.

A tree runs only at the path `/opt/partage/<version>`. Its MANIFEST has a line for each file: mode, SHA-256, path.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.installation.errors import BadTree, StepFailed
from partage_cli.installation.places import CURRENT, TREES, UNITS

OUR_UNITS: Final = ("partage-broker.service", "partage-crishim.socket", "partage-crishim.service")
"""In start order. The advertiser is a pod, or the operator's unit."""
ADVERTISER_UNIT: Final = "partage-advertiser.service"
SPARE_BYTES: Final = 256 << 20
"""Space that must stay free beside a copy: a node whose disk is full loses its pods."""
_LINE: Final = re.compile(r"(?P<mode>[0-7]{4}) (?P<sha256>[0-9a-f]{64}) (?P<path>[^/].*)")
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,127}")
_PIECE: Final = 1 << 20
_libc: Final = ctypes.CDLL(None, use_errno=True)


def own_tree() -> Path | None:
    """The tree that this program runs from; None if it runs from something else, such as a wheel."""
    tree = Path(sys.executable).parent.parent
    return tree if (tree / "MANIFEST").is_file() and (tree / "VERSION").is_file() else None


def version_of(tree: Path) -> str:
    text = text_of(tree / "VERSION")
    version = "" if isinstance(text, Unseen) else text.strip()
    if not _VERSION.fullmatch(version) or version == Path(CURRENT).name:
        raise BadTree(f"{tree}: VERSION says no version; this is no tree of partage")
    return version


def check(tree: Path) -> str:
    """Its version; raises `BadTree` if a file is missing, differs, or is not in the manifest."""
    version = version_of(tree)
    text = text_of(tree / "MANIFEST")
    if isinstance(text, Unseen):
        raise BadTree(str(text))
    wanted = {path: (mode, sha256) for mode, sha256, path in _lines(tree, text)}
    there = {str(path.relative_to(tree)): path for path in tree.rglob("*") if not path.is_dir() or path.is_symlink()}
    there.pop("MANIFEST", None)
    if missing := sorted(wanted.keys() - there.keys()):
        raise BadTree(f"{tree / missing[0]} is missing, and {len(missing) - 1} more; copy the tree again")
    if more := sorted(there.keys() - wanted.keys()):
        raise BadTree(f"{there[more[0]]} is not in the manifest, and {len(more) - 1} more; copy the tree again")
    for name, (mode, sha256) in wanted.items():
        if (found := _found(there[name])) != (mode, sha256):
            raise BadTree(f"{there[name]} is not the file of the manifest ({found[0]} for {mode}); copy the tree again")
    return version


def place(root: Path, tree: Path) -> Path:
    """Puts the tree in place, unless it is there and whole; raises `BadTree`, `StepFailed` and `OSError`.

    On a full disk, and until the copy is complete, existing files stay.
    """
    version = check(tree)
    home = root / TREES / version
    home.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with _alone(home.parent):
        if not (home.is_dir() and (home.samefile(tree) or _is_whole(home))):
            _copy(tree, home)
    return home


def _copy(tree: Path, home: Path) -> None:
    beside, former = (home.with_name(f".{what}-{home.name}") for what in ("unpacked", "former"))
    for left in (beside, former):
        shutil.rmtree(left, ignore_errors=True)
    _require_room(tree, home.parent)
    try:
        shutil.copytree(tree, beside, symlinks=True)
        check(beside)
        put_on_disk(beside)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    if home.exists():
        home.rename(former)
    beside.rename(home)
    shutil.rmtree(former, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Waits while another process copies: the fleet's installer and a person may want the same tree at once."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def put_on_disk(folder: Path) -> None:
    """Syncs its file system. sync(2) would wait for all others too: busy disks, dead servers."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def _require_room(tree: Path, folder: Path) -> None:
    needed = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) + SPARE_BYTES
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < needed:
        raise StepFailed(
            f"no room for {tree}: {needed >> 20} MiB must be free at {folder}, and {free >> 20} MiB are; nothing was "
            "changed; make room"
        )


def _is_whole(tree: Path) -> bool:
    try:
        check(tree)
    except BadTree:
        return False
    return True


def point(root: Path, version: str, name: str = CURRENT) -> None:
    """Switches versions, by one rename of a link."""
    link = root / name
    beside = link.with_name(f".{link.name}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(version)
    beside.rename(link)


def pointed(root: Path) -> str:
    """The version in force; empty if there is none."""
    link = root / CURRENT
    return link.readlink().name if link.is_symlink() else ""


def keep_trees(root: Path, versions: Collection[str]) -> None:
    """Deletes every tree whose version is none of these."""
    for tree in (root / TREES).iterdir():
        if (tree / "VERSION").is_file() and not tree.is_symlink() and tree.name not in versions:
            shutil.rmtree(tree, ignore_errors=True)


def units_of(tree: Path) -> dict[str, str]:
    """Unit texts by name; raises `BadTree`."""
    texts = {name: text_of(tree / "systemd" / name) for name in OUR_UNITS}
    if wrong := [text for text in texts.values() if isinstance(text, Unseen)]:
        raise BadTree(str(wrong[0]))
    return {name: str(text) for name, text in texts.items()}


def kept_units(root: Path, tree: Path) -> dict[str, str]:
    """A tree's units; the advertiser's too, if the host has one that runs from a tree."""
    there, brought = text_of(root / UNITS / ADVERTISER_UNIT), text_of(tree / "systemd" / ADVERTISER_UNIT)
    if isinstance(there, Unseen) or isinstance(brought, Unseen) or f"/{CURRENT}/" not in there:
        return units_of(tree)
    return {**units_of(tree), ADVERTISER_UNIT: brought}


def other_units(root: Path, texts: Mapping[str, str]) -> list[str]:
    """Those that differ on the host, or are missing."""
    return [name for name, text in texts.items() if text_of(root / UNITS / name) != text]


def _lines(tree: Path, text: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or ".." in Path(match["path"]).parts:
            raise BadTree(f"{tree / 'MANIFEST'}, line {number}: is no mode, SHA-256 and path")
        yield match["mode"], match["sha256"], match["path"]


def _found(path: Path) -> tuple[str, str]:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return "no file", ""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return f"{stat.S_IMODE(status.st_mode):04o}", digest.hexdigest()
