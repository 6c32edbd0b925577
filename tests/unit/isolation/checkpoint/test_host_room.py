"""How much of the host's memory a process may still use, by its control groups and the node."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_isolation.checkpoint.host_room import host_room

MIB = 1 << 20
PID = 7
NO_LIMIT = 1 << 42
SECOND = ("max", "current", "inactive_file")
FIRST = ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")


class Host:
    """The files of a kernel."""

    def __init__(self, root: Path, *, available_mib: int = 10_000) -> None:
        self.proc, self.groups = root / "proc", root / "groups"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / str(PID)).mkdir()
        (self.proc / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {available_mib << 10} kB\n")

    def mounted(self, *, is_first: bool) -> None:
        kind = "cgroup cgroup rw,memory" if is_first else "cgroup2 cgroup2 rw"
        other = "40 1 0:9 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"
        (self.proc / "self/mountinfo").write_text(f"{other}\n41 1 0:10 / {self.groups} rw - {kind}\n")
        number = "4:memory" if is_first else "0:"
        (self.proc / str(PID) / "cgroup").write_text(f"9:cpu:/elsewhere\n{number}:/pods/main\n")

    def limited(self, group: str, limit_mib: int, used_mib: int, idle_mib: int, *, is_first: bool) -> None:
        limit, used, idle = FIRST if is_first else SECOND
        folder = self.groups / group
        folder.mkdir(parents=True, exist_ok=True)
        is_max = limit_mib == NO_LIMIT and not is_first
        (folder / f"memory.{limit}").write_text("max" if is_max else str(limit_mib * MIB))
        (folder / f"memory.{used}").write_text(str(used_mib * MIB))
        (folder / "memory.stat").write_text(f"anon 1\n{idle} {idle_mib * MIB}\n")

    def room_mib(self) -> int:
        return host_room(PID, proc=self.proc).free // MIB


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    ("own", "above", "room_mib"),
    [
        ((100, 40, 0), (NO_LIMIT, 40, 0), 60),
        ((100, 40, 15), (NO_LIMIT, 40, 0), 75),  # what the kernel reclaims first is free
        ((100, 40, 0), (50, 45, 0), 5),  # a parent group has less
        ((100, 140, 0), (NO_LIMIT, 140, 0), 0),
        ((NO_LIMIT, 40, 0), (NO_LIMIT, 40, 0), 10_000),  # then the node's limit applies
        ((90_000, 40, 0), (NO_LIMIT, 40, 0), 10_000),
    ],
)
def test_the_least_that_any_group_or_the_node_leaves(
    tmp_path: Path, own: tuple[int, int, int], above: tuple[int, int, int], room_mib: int, *, is_first: bool
) -> None:
    host = Host(tmp_path)
    host.mounted(is_first=is_first)
    host.limited("pods", *above, is_first=is_first)
    host.limited("pods/main", *own, is_first=is_first)
    assert host.room_mib() == room_mib


def test_a_group_whose_memory_is_not_counted_leaves_what_others_do(tmp_path: Path) -> None:
    host = Host(tmp_path, available_mib=70)
    host.mounted(is_first=False)
    (host.groups / "pods/main").mkdir(parents=True)
    assert host.room_mib() == 70


def test_what_cannot_be_read_is_an_error_and_no_room(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.mounted(is_first=False)
    host.limited("pods/main", 100, 40, 0, is_first=False)
    (host.groups / "pods/main/memory.current").unlink()
    with pytest.raises(OSError, match=r"memory\.current"):
        host.room_mib()
