"""Figures in readable units, for judges' sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MIB = 1 << 20
GIB = 1 << 30


def size(count: float | None) -> str:
    if count is None:
        return "not told"
    for unit, bytes_each in (("GiB", GIB), ("MiB", MIB), ("KiB", 1024)):
        if abs(count) >= bytes_each:
            return f"{count / bytes_each:.3g} {unit}"
    return f"{count:g} B"


def ms(time: float | None) -> str:
    return "not within 10 s" if time is None else f"{time:g} ms"


def listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def yes(value: object) -> str:
    return "yes" if value else "no"


def parts(found: Sequence[float]) -> str:
    return " and ".join(f"{each:.3f}" for each in found)


def findings(found: Sequence[str]) -> str:
    return f"; findings: {listed(found)}" if found else "; no findings"
