"""Processes started by a test: ports for them, and how to find them by a variable in their environment."""

from __future__ import annotations

import socket
from pathlib import Path


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started_with(mark: str) -> list[str]:
    """Command lines, without folders, of processes with `NAME=VALUE` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                found.append(" ".join([Path(words[0]).name, *words[1:]]))
        except OSError:
            continue
    return found
