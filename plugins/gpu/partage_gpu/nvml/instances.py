"""What a MIG instance's profile is called. Pure."""

from __future__ import annotations

import re
from typing import Final

_BEHIND: Final = re.compile(r" MIG (?P<profile>(\d+c\.)?\d+g\.\d+gb\S*)", re.ASCII)
_MIB_IN_GIB: Final = 1024


def profile_of(name: str, slices: tuple[int, int, int] | None) -> str:
    """As NVIDIA writes it: `1g.10gb`, `1c.3g.40gb`. NVML puts it behind the card's name; older drivers do not.

    `slices`: for compute, in all, and memory in MiB.
    """
    written = _BEHIND.search(name)
    if written is not None:
        return written["profile"]
    if slices is None:
        return "unknown"
    compute, total, memory_mib = slices
    profile = f"{total}g.{-(-memory_mib // _MIB_IN_GIB)}gb"
    return profile if compute == total else f"{compute}c.{profile}"
