"""Parsers and checks of /proc files: paths and links, maps, mounts, start times and cgroups. Pure.

An image may have links on the way to a path: `/run` may be one to `/var/run`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

_MOST_LINKS: Final = 40
"""The kernel's limit."""


def led_to(path: str, link: Callable[[str], str | None]) -> str:
    """Resolve links in a path; unchanged if there are too many. `link` returns the target of a path's last part."""
    done, ahead, links = list[str](), path.split("/")[::-1], 0
    while ahead:
        name = ahead.pop()
        if name == "..":
            del done[-1:]
        elif name not in ("", "."):
            target = link(_joined([*done, name]))
            if target is None:
                done.append(name)
                continue
            links += 1
            if links > _MOST_LINKS:
                return path
            if target.startswith("/"):
                done.clear()
            ahead += target.split("/")[::-1]
    return _joined(done)


def _joined(names: list[str]) -> str:
    return f"/{'/'.join(names)}"


_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_WORD: Final = re.compile(r"[0-9A-Za-z_]+")
_DELETED: Final = "//deleted"
"""Suffix of a mount's root whose file was replaced or removed on the node since."""
_FIELDS: Final = 6
"""Fields of a mountinfo line that are read; the rest may be long."""
_MOST_NESTED: Final = 64
_MOST_DIGITS: Final = 20
"""Digits of a number that the kernel writes."""
_UNLINKED: Final = " (deleted)"
Source = tuple[str, str]
"""Device and root of a mount."""


class FileId(NamedTuple):
    """Unique identification of a file."""

    device: str
    """As the kernel writes it in maps: `08:01`."""
    inode: int


class Birth(NamedTuple):
    """Tells a process from another with the same pid, and from itself before an exec."""

    start: int
    """Clock ticks since boot."""
    image: int
    """Start of its stack, which each exec places elsewhere."""


class MountLine(NamedTuple):
    """One mount, as a process sees it."""

    id: int
    parent: int
    device: str
    """For example `0:25`."""
    root: str
    """The part of the file system that is mounted."""
    point: str
    is_readonly: bool


@dataclass(frozen=True)
class Expected:
    """What must be mounted at a path of a container."""

    point: str
    sources: AbstractSet[Source]
    """Valid sources."""
    parents: AbstractSet[Source] = frozenset()
    """Folders of valid sources that were removed since."""
    may_be_absent: bool = False
    """A container started by an earlier version has nothing there."""


def executes(maps: str, files: Iterable[FileId], *, path: str) -> bool | None:
    """Whether a process may execute any part of one of the files, which it sees at `path`.

    None for a process without memory, and for one that maps a file from `path` that was removed on the node since:
    which file it was can't be determined. A large program has thousands of mappings, so only few lines are parsed.
    """
    if _mapping(maps.partition("\n")[0]) is None:
        return None
    if any(file in _executed(maps, f" {file.device} {file.inode} ") for file in files):
        return True
    return None if mapped_as(maps, f"{path}{_UNLINKED}") else False


def _executed(maps: str, words: str) -> frozenset[FileId]:
    rows = map(_mapping, _lines_with(maps, words))
    return frozenset(row.file for row in rows if row is not None and "x" in row.permissions)


def _lines_with(text: str, words: str) -> Iterator[str]:
    at = text.find(words)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[text.rfind("\n", 0, at) + 1 : end]
        at = text.find(words, end)


def mapped_as(maps: str, path: str) -> FileId | None:
    """The kernel's identification of our file in maps, which may have another device than stat."""
    rows = map(_mapping, _lines_with(maps, path))
    return next((row.file for row in rows if row is not None and row.path == path), None)


class _Mapping(NamedTuple):
    permissions: str
    file: FileId
    path: str


def _mapping(line: str) -> _Mapping | None:
    match line.split(maxsplit=5):
        case [_, permissions, _, device, inode, *path] if _is_number(inode):
            return _Mapping(permissions, FileId(device, int(inode)), "".join(path))
        case _:
            return None


def mounts(mountinfo: str) -> tuple[MountLine, ...]:
    """All parseable mounts, in the kernel's order."""
    return tuple(one for one in map(_mount, mountinfo.splitlines()) if one is not None)


def _mount(line: str) -> MountLine | None:
    match line.split(" ", _FIELDS):
        case [id_, parent, device, root, point, options, *_] if _is_number(id_) and _is_number(parent):
            return MountLine(
                int(id_), int(parent), device, _unescaped(root), _unescaped(point), "ro" in options.split(",")
            )
        case _:
            return None


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text) if "\\" in text else text


def wrong_places(seen: Sequence[MountLine], expected: Sequence[Expected]) -> tuple[str, ...] | None:
    """The paths at which a process sees something else, or more, or could write.

    All mounts at or below one of the paths must be expected, topmost and read-only. None if no conclusion is possible:
    a process whose root is no mount has changed it, and its paths are not the container's.
    """
    if topmost(seen, "/") is None:
        return None
    return tuple(each.point for each in expected if not _is_as(each, seen, expected))


def _is_as(wanted: Expected, seen: Sequence[MountLine], expected: Sequence[Expected]) -> bool:
    found = topmost(seen, wanted.point)
    if found is None or found.point != wanted.point:
        return wanted.may_be_absent
    if not found.is_readonly or not _is_from(found, wanted):
        return False
    others = {each.point for each in expected} - {wanted.point}
    return not any(_is_within(one.point, wanted.point) and one.point not in others for one in seen if one is not found)


def _is_from(found: MountLine, wanted: Expected) -> bool:
    root = found.root.removesuffix(_DELETED)
    was_removed = root != found.root and (found.device, root.rpartition("/")[0]) in wanted.parents
    return was_removed or (found.device, root) in wanted.sources


def topmost(seen: Sequence[MountLine], path: str) -> MountLine | None:
    """The mount that contains a path without links: follows overlying mounts from the root down."""
    below = dict[int, list[MountLine]]()
    for one in seen:
        below.setdefault(one.parent, []).append(one)
    ids = {one.id for one in seen}
    on = next((one for one in seen if one.point == "/" and (one.parent not in ids or one.parent == one.id)), None)
    for _ in range(_MOST_NESTED):
        if on is None:
            return None
        over = [one for one in below.get(on.id, ()) if one is not on and _is_within(path, one.point)]
        if not over:
            return on
        on = min(over, key=lambda one: len(one.point))
    return None


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def mounted_from(ours: Sequence[MountLine], path: str) -> Source | None:
    """Device and root that a mount of the broker's path has, wherever it is mounted."""
    on = topmost(ours, path)
    if on is None:
        return None
    inside = path.removeprefix(on.point.rstrip("/")).rstrip("/")
    return on.device, f"{on.root.rstrip('/')}{inside}" or "/"


def birth(stat: str) -> Birth | None:
    """Parse /proc/PID/stat, from the last parenthesis on, since a process name may contain any character."""
    fields = stat.rpartition(")")[2].split()
    start_and_stack = fields[19:20] + fields[25:26]
    if len(start_and_stack) != 2 or not all(_NUMBER.fullmatch(each) for each in start_and_stack):  # noqa: PLR2004
        return None
    return Birth(*map(int, start_and_stack))


def container_of(cgroup: str, ids: Container[str]) -> str | None:
    """The container that a process is in, by its cgroups' paths; the outermost, where they are nested.

    A path's component is the id alone, or has words around it: `cri-containerd-<id>.scope`, `kubepods.slice:crio:<id>`.
    """
    return next((word for word in _words(cgroup.splitlines()) if word in ids), None)


def _words(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        number, _, rest = line.partition(":")
        if number.isdecimal():
            yield from (found[0] for found in _WORD.finditer(rest.partition(":")[2]))


_SHARED: Final = "0::"


def shared_hierarchy(mountinfo: str) -> str | None:
    """Mount point of the unified cgroup hierarchy's root."""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        match fields.split(" "):
            case [_, _, _, "/", point, *_] if rest.startswith("cgroup2 "):
                return point
            case _:
                pass
    return None


def group_of(cgroup: str, container_id: str) -> str | None:
    """A container's cgroup below the unified hierarchy's root, by the cgroup file of any process in it.

    On a cgroup v1 node containers are in hierarchies of single controllers, and in the unified one they may share one
    cgroup with others. So a cgroup counts only if its own name contains the container's id.
    """
    for line in cgroup.splitlines():
        if line.startswith(_SHARED):
            parts = line.removeprefix(_SHARED).strip("/").split("/")
            for number, part in enumerate(parts, 1):
                if container_of(f"{_SHARED}/{part}", {container_id}) is not None:
                    return "/".join(parts[:number])
    return None
