"""The services of one machine, as processes: children of the `partage up` that supervises them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_WORDS: Final = {
    "containerd": b"/containerd",
    "broker": b"partage_isolation",
    "crishim": b"partage_crishim",
    "inventory": b"partage_advertiser",
    "manager": b"partage_cli.machine.manager",
}
"""Of their command lines."""


def pid_of(supervisor: int, service: str) -> int:
    """As the host counts processes; 0 while there is none."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return next((pid for pid in map(int, children) if _is(pid, service)), 0)


def _is(pid: int, service: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False
    return any(word.endswith(_WORDS[service]) for word in words)
