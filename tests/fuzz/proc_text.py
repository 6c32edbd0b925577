"""Any text of a process in /proc is read without a fault, and proves nothing that it does not contain.

Processes choose names in it. The first byte says how the rest is read.
"""

from __future__ import annotations

from typing import Final

from partage_isolation.audit.proofs import (
    Expected,
    FileId,
    birth,
    container_of,
    executes,
    mapped_as,
    mounted_from,
    mounts,
    wrong_places,
)

_ID: Final = "ab" * 32
_PATH: Final = "/run/partage/lib/libcuda.so.1"
_LIBRARY: Final = FileId("fd:00", 77)
_PLACES: Final = (
    Expected("/run/partage", frozenset({("0:25", "/k")})),
    Expected("/run/partage/lib", frozenset({("8:1", "/l")})),
)
_MAPS: Final = b"""\
7f10-7f20 r-xp 00001000 fd:00 77 /run/partage/lib/libcuda.so.1
7f20-7f30 rw-p 00000000 00:00 0
"""
_MOUNTINFO: Final = b"""\
1 0 0:60 / / rw - overlay overlay rw
2 1 0:25 /k /run/partage ro - tmpfs tmpfs rw
3 2 8:1 /l /run/partage/lib ro master:1 - ext4 /dev/sda1 rw
"""
_STAT: Final = b"77 (a) b) S 1 2 3 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 4711 100 200 1844 1 2 140720000000000 0 0"
_CGROUP: Final = f"12:memory:/kubepods/pod1/{_ID}\n0::/cri-containerd-{_ID}.scope\n".encode()
SEEDS: Final = (b"m" + _MAPS, b"i" + _MOUNTINFO, b"s" + _STAT, b"c" + _CGROUP)
DICTIONARY: Final = (
    b" ro,",
    b" - ",
    b"\\040",
    b"//deleted",
    b"/run/partage",
    b" / / ",
    b"0::/",
    b".scope",
    b"(deleted)",
)


def target(data: bytes) -> str:
    text = data[1:].decode(errors="replace")
    match data[:1]:
        case b"m":
            return _maps(text)
        case b"i":
            return _mountinfo(text)
        case b"s":
            return f"birth {birth(text) is not None}"
        case _:
            return _cgroup(text)


def _maps(text: str) -> str:
    found, path = executes(text, {_LIBRARY}, path=_PATH), mapped_as(text, _PATH)
    fields = [line.split()[:5] for line in text.split("\n")]
    if found and not any("x" in one[1] and one[3:] == ["fd:00", "77"] for one in fields if len(one) == 5):
        raise AssertionError("a library that does not stand there")
    return f"maps {found} {path is not None}"


def _mountinfo(text: str) -> str:
    seen = mounts(text)
    wrong = wrong_places(seen, _PLACES)
    if wrong == ():
        for place in _PLACES:
            if not any(one.point == place.point and one.is_readonly for one in seen):
                raise AssertionError("a place is right that is not mounted read-only")
            if sum(one.point == place.point for one in seen) != 1:
                raise AssertionError("a place is right at which two things are mounted")
    mounted_from(seen, "/run/partage/containers")
    return f"mounts {len(seen)} {wrong}"


def _cgroup(text: str) -> str:
    found = container_of(text, {_ID})
    if found is not None and _ID not in text:
        raise AssertionError("a container that does not stand there")
    return f"container {found is not None}"
