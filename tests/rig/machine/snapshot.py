"""Everything on the machine that a rig could leave behind, and the changes between two snapshots.

Only new, missing or changed things count. The machine's own processes come and go, so only processes of rigs are
included: those with a rig's mark, and containers, by their cgroup.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.machine import slots
from rig.machine.cgroups import OF_TESTS, OURS, ROOT
from rig.machine.components import MARK

_WRITTEN_TO: Final = ("/etc", "/opt", "/run", "/usr/libexec", "/var")
# Written by the machine's own services at any time.
_OF_OTHERS: Final = ("/run/log", "/run/systemd", "/run/udev", "/var/cache", "/var/lib/apt", "/var/lib/dpkg", "/var/log")
# Counters of the machine, or values that differ at each read.
_MOVING: Final = (
    "dev/cdrom",
    "fs/aio-nr",
    "fs/dentry-state",
    "fs/file-nr",
    "fs/inode-nr",
    "fs/inode-state",
    "fs/quota",
    "kernel/ns_last_pid",
    "kernel/pty/nr",
    "kernel/random",
    "net/netfilter/nf_conntrack_count",
)

_MARK: Final = f"{MARK}=".encode()

Things = Mapping[str, str]


@dataclass(frozen=True)
class Snapshot:
    process: Things
    mount: Things
    device: Things
    route: Things
    sysctl: Things
    cgroup: Things
    file: Things

    rigs: frozenset[int]

    def what_changed(self, later: Snapshot, own: int | None = None) -> list[str]:
        """One line for each change; changes of other living rigs are ignored, but not those of the own rig."""
        lines = [line for kind in _KINDS for line in _differences(kind, self, later)]
        of_others = _name_of({rig for rig in self.rigs | later.rigs if rig != own})
        return [line for line in lines if not of_others.search(line)]


_KINDS: Final = tuple(name for name in Snapshot.__dataclass_fields__ if name != "rigs")


def look() -> Snapshot:
    return Snapshot(
        rigs=frozenset(slots.owners()),
        process=dict(_processes()),
        mount=dict(_mounts()),
        device=dict.fromkeys((entry.name for entry in Path("/sys/class/net").iterdir()), ""),
        route=dict.fromkeys(_lines("ip", "route", "show", "table", "all"), ""),
        sysctl=dict(_sysctls()),
        cgroup={path: "" for path, _, _ in os.walk(ROOT) if f"/{OF_TESTS}" not in path},
        file=dict(_files()),
    )


def _name_of(rigs: set[int]) -> re.Pattern[str]:
    """A pattern for the names of these rigs' things, and for what can't be attributed while they live."""
    if not rigs:
        return re.compile("(?!)")
    numbers = "|".join(map(str, sorted(rigs)))
    return re.compile(rf"partage(-rig/)?({numbers})(\D|$)|/partage-rig is |/k8s.io[ /]")


def _differences(kind: str, before: Snapshot, after: Snapshot) -> Iterator[str]:
    old: Things = getattr(before, kind)
    new: Things = getattr(after, kind)
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            # A module that was loaded brings its own sysctls, and stays.
            if kind != "sysctl":
                yield f"{kind} {name} {new[name]} is new".replace("  ", " ")
        elif name not in new:
            if kind != "process":
                yield f"{kind} {name} is gone"
        elif old[name] != new[name]:
            yield f"{kind} {name} was {old[name]}, is {new[name]}"


def _processes() -> Iterator[tuple[str, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            marks = [each for each in (entry / "environ").read_bytes().split(b"\0") if each.startswith(_MARK)]
            cgroups = [line for line in (entry / "cgroup").read_text().splitlines() if OURS in line]
            if marks or cgroups:
                yield entry.name, " ".join([words, *(mark.decode() for mark in marks), *cgroups[:1]])
        except OSError:  # the process ended
            continue


def _mounts() -> Iterator[tuple[str, str]]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        yield fields[4], " ".join((fields[3], *fields[fields.index("-") + 1 :]))


def _sysctls() -> Iterator[tuple[str, str]]:
    root = Path("/proc/sys")
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            key = str(path.relative_to(root))
            if key.startswith(_MOVING):
                continue
            try:
                yield key, path.read_text(errors="replace").strip()
            except OSError:  # some are write-only
                continue


def _files() -> Iterator[tuple[str, str]]:
    for top in _WRITTEN_TO:
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if not f"{folder}/{name}".startswith(_OF_OTHERS)]
            yield from ((f"{folder}/{name}", "") for name in (*folders, *names))


def _lines(*argv: str) -> list[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
