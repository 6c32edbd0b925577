"""Host memory that is still available to a process: by its cgroups, of either version, and on the node.

A cgroup's inactive file cache counts as free: the kernel reclaims it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

_KIB: Final = 1024


class Version(NamedTuple):
    """File names of a cgroup version."""

    system: str
    limit: str
    used: str
    idle: str
    """Key in `memory.stat`."""


_SECOND: Final = Version("cgroup2", "memory.max", "memory.current", "inactive_file")
_FIRST: Final = Version("cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


class HostRoom(NamedTuple):
    free: int
    where: str
    """The cgroup folder, or the node, that has this little."""


def host_room(pid: int, *, proc: Path = Path("/proc")) -> HostRoom:
    """The minimum over all of them; raises OSError or ValueError where that can't be read."""
    groups = _groups((proc / str(pid) / "cgroup").read_text(), (proc / "self/mountinfo").read_text())
    rooms = [HostRoom(_available((proc / "meminfo").read_text()), "the node")]
    for top, folder, version in groups:
        rooms += _rooms(top, folder, version)
    return min(rooms)


def _groups(cgroup: str, mountinfo: str) -> Iterator[tuple[Path, Path, Version]]:
    """Mount points of the hierarchies that count memory, with the process's folder in each."""
    paths: Mapping[str, str] = {
        controllers: path
        for _, controllers, path in (line.split(":", 2) for line in cgroup.splitlines() if line.count(":") > 1)
    }
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        root, point = fields.split(" ")[3:5]
        system, _, options = rest.split(" ", 2)
        found = None
        if system == _SECOND.system:
            found = paths.get(""), _SECOND
        elif system == _FIRST.system and "memory" in options.split(","):
            found = next((path for names, path in paths.items() if "memory" in names.split(",")), None), _FIRST
        if found is not None and found[0] is not None and root == "/":
            yield Path(point), Path(f"{point}{found[0]}"), found[1]


def _rooms(top: Path, folder: Path, version: Version) -> Iterator[HostRoom]:
    """Room in a cgroup and all its ancestors; one without a limit is skipped."""
    while folder != top and top in folder.parents:
        if (folder / version.limit).exists():  # otherwise its controller is off
            limit = (folder / version.limit).read_text().strip()
            if limit != "max":
                used, stat = int((folder / version.used).read_text()), (folder / "memory.stat").read_text()
                yield HostRoom(max(0, int(limit) - used + _named(stat, version.idle)), str(folder))
        folder = folder.parent


def _named(stat: str, name: str) -> int:
    return next((int(line.split()[1]) for line in stat.splitlines() if line.startswith(f"{name} ")), 0)


def _available(meminfo: str) -> int:
    line = next((each for each in meminfo.splitlines() if each.startswith("MemAvailable:")), None)
    if line is None:
        raise ValueError("MemAvailable is not in meminfo")
    return int(line.split()[1]) * _KIB
