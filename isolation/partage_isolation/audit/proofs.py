"""Where a path leads, by the links that an image has on the way: `/run` may be one to `/var/run`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

_MOST_LINKS: Final = 40
"""As in the kernel."""


def led_to(path: str, link: Callable[[str], str | None]) -> str:
    """The path without links; as it is where there are too many. `link` gives what a path's last name leads to."""
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
_WORD: Final = re.compile(r"[0-9A-Za-z_]+")
_DELETED: Final = "//deleted"
"""Behind the root of a mount whose file was replaced or removed on the node since."""
_FIELDS: Final = 6
"""Of a line of mountinfo that are read; the rest may be long."""
_MOST_NESTED: Final = 64
_MOST_DIGITS: Final = 20
"""Of a number that the kernel writes."""
_UNLINKED: Final = " (deleted)"
Source = tuple[str, str]
"""Device and root of a mount."""


class FileId(NamedTuple):
    """What tells a file from every other one."""

    device: str
    """As the kernel writes it in maps: `08:01`."""
    inode: int


class Birth(NamedTuple):
    """Tells a process from another of the same pid, and from itself before an exec."""

    start: int
    """Clock ticks since boot."""
    image: int
    """Where its stack begins: each exec puts it elsewhere."""


class MountLine(NamedTuple):
    """One mount, as a process sees it."""

    id: int
    parent: int
    device: str
    """As in `0:25`."""
    root: str
    """What of the file system is mounted."""
    point: str
    is_readonly: bool


@dataclass(frozen=True)
class Expected:
    """What is to be seen at a place of a container, and nothing else."""

    point: str
    sources: AbstractSet[Source]
    """It is one of these."""
    parents: AbstractSet[Source] = frozenset()
    """Or was in one of these, and was removed there since."""
    may_be_absent: bool = False
    """A container that an earlier version started has nothing there."""


def executes(maps: str, files: Iterable[FileId], *, path: str) -> bool | None:
    """Whether a process may execute any part of one of the files, which it sees at `path`.

    None for a process that has no memory any more, and for one that has a file which stood there and was removed on the
    node since: which one it was can't be told. A large program has thousands of mappings, so only few lines are read.
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
    """How the kernel names a file of ours in maps, where it may show another device than stat does."""
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
    """All that can be read, in the kernel's order."""
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
    """The places at which a process sees something else, or more, or could write.

    All that is at or below one of the places must be expected, on top, and read-only. None where nothing can be said: a
    process whose root is no mount has changed it, and its paths are not the container's.
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
    """The mount in which a path is, if it has no links: from the root down, what lies over what."""
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
    """Device and root that a mount of this path of ours has, wherever it is mounted."""
    on = topmost(ours, path)
    if on is None:
        return None
    inside = path.removeprefix(on.point.rstrip("/")).rstrip("/")
    return on.device, f"{on.root.rstrip('/')}{inside}" or "/"


def birth(stat: str) -> Birth | None:
    """From /proc/PID/stat; a name may hold anything, so it is read from its last parenthesis on."""
    fields = stat.rpartition(")")[2].split()
    start_and_stack = fields[19:20] + fields[25:26]
    if len(start_and_stack) != 2 or not all(map(str.isdecimal, start_and_stack)):  # noqa: PLR2004
        return None
    return Birth(*map(int, start_and_stack))


def container_of(cgroup: str, ids: Container[str]) -> str | None:
    """Which of the containers a process is in, by its cgroups' paths; the outermost, where they are nested.

    A path's part is the id alone, or has words around it: `cri-containerd-<id>.scope`, `kubepods.slice:crio:<id>`.
    """
    return next((word for word in _words(cgroup.splitlines()) if word in ids), None)


def _words(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        number, _, rest = line.partition(":")
        if number.isdecimal():
            yield from (found[0] for found in _WORD.finditer(rest.partition(":")[2]))


_SHARED: Final = "0::"


def shared_hierarchy(mountinfo: str) -> str | None:
    """Where the hierarchy of control groups that all controllers share is mounted from its root on."""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        match fields.split(" "):
            case [_, _, _, "/", point, *_] if rest.startswith("cgroup2 "):
                return point
            case _:
                pass
    return None


def group_of(cgroup: str, container_id: str) -> str | None:
    """A container's group below the root of the shared hierarchy, by the file of any process in it.

    On a node of the older kind containers are in hierarchies of single controllers, and in the shared one they may all
    be in one group with others. So a group counts only if its own name has the container's id.
    """
    for line in cgroup.splitlines():
        if line.startswith(_SHARED):
            parts = line.removeprefix(_SHARED).strip("/").split("/")
            for number, part in enumerate(parts, 1):
                if container_of(f"{_SHARED}/{part}", {container_id}) is not None:
                    return "/".join(parts[:number])
    return None
