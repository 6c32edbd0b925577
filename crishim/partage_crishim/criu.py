"""Whether the container runtime would find CRIU, with which some versions of containerd restore checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDERS: Final = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
"""Where systemd has a service look for programs."""


def has_criu(root: Path) -> bool:
    """Looks each time: it may be installed while the runtime runs."""
    return any((root / folder / "criu").exists() for folder in _FOLDERS)
