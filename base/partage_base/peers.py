"""The process at the other end of a connection, identified independently of pid reuse.

Also its control group, and its pids in nested namespaces. It reads /proc, and nothing that the process itself could
have written.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CREDENTIALS: Final = struct.Struct("3i")
_SO_PEERPIDFD: Final = 77
"""Since Linux 6.5: identifies the very process, even if its pid was reused."""
_DESCRIPTOR: Final = struct.Struct("i")
_START_FIELD: Final = 19
"""Index in /proc/PID/stat, counted after the name."""
_NSPID: Final = re.compile(rb"^NSpid:\t([0-9\t]+)$", re.MULTILINE)
_LONGEST_STATUS: Final = 65536


class NoProcess(Exception):
    """It is gone, or can't be told from another."""


@dataclass(frozen=True)
class Peer:
    pid: int
    start: int
    pidfd: int
    """Readable when the process has ended; the owner of this object closes it."""


def peer_of(connection: socket.socket) -> Peer:
    """The process that connected; raises `NoProcess`."""
    pid: int = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0]
    if pid <= 0:
        raise NoProcess  # in no namespace that is visible to us
    return peer_with(pid, _pidfd_of(connection, pid))


def peer_with(pid: int, pidfd: int) -> Peer:
    """The process behind the descriptor, which has that pid; the descriptor is closed on failure."""
    start = start_of(pid)
    if start is None or has_ended(pidfd):
        os.close(pidfd)
        raise NoProcess
    return Peer(pid, start, pidfd)


def peer_named(pid: int) -> Peer:
    try:
        return peer_with(pid, os.pidfd_open(pid))
    except (OSError, ValueError):
        raise NoProcess from None


def _pidfd_of(connection: socket.socket, pid: int) -> int:
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, _DESCRIPTOR.size)
    except OSError:  # an older kernel, or it has already been reaped
        pass
    else:
        descriptor: int = _DESCRIPTOR.unpack(raw)[0]
        return descriptor
    try:
        return os.pidfd_open(pid)
    except OSError:
        raise NoProcess from None


def has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def start_of(pid: int) -> int | None:
    """Start time in ticks since boot; None if there is no such pid."""
    try:
        stat = _read(f"/proc/{pid}/stat")
        return int(stat[stat.rindex(b")") + 2 :].split()[_START_FIELD])
    except (OSError, ValueError, IndexError):
        return None


def is_stopped(pid: int) -> bool:
    """Whether it is stopped by a signal or a debugger."""
    try:
        stat = _read(f"/proc/{pid}/stat")
        return stat[stat.rindex(b")") + 2 :][:1] in (b"T", b"t")
    except (OSError, ValueError):
        return False


def cgroup_components(pid: int) -> frozenset[str]:
    """The path components of its control groups, v1 and v2; empty if it is gone."""
    try:
        return components_of(_read(f"/proc/{pid}/cgroup").decode(errors="replace"))
    except OSError:
        return frozenset()


def components_of(text: str) -> frozenset[str]:
    """The path components in the text of /proc/PID/cgroup. Pure."""
    paths = (line.split(":", 2)[2] for line in text.splitlines() if line.count(":") > 1)
    return frozenset(part for path in paths for part in path.split("/") if part)


def is_within(components: frozenset[str], runtime_id: str) -> bool:
    """Whether they belong to this container of the runtime: `ID`, or the driver's `PREFIX-ID.scope`."""
    return any(runtime_id in (part, part.removesuffix(".scope").rpartition("-")[2]) for part in components)


def pids_of(pid: int) -> tuple[int, ...]:
    """Its pids from our namespace down to its own; empty if it is gone."""
    try:
        found = _NSPID.search(_read(f"/proc/{pid}/status"))
    except OSError:
        return ()
    return tuple(map(int, found[1].split())) if found else ()


def namespace_of(pid: int) -> int:
    """The inode of its pid namespace; 0 if it is gone."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116  the same as the others here
    except OSError:
        return 0


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST_STATUS)
    finally:
        os.close(descriptor)
