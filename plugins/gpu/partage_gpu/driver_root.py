"""Locates NVIDIA's driver and its libraries, for the advertiser, crishim's plugin and the broker.

NVIDIA's operator mounts the driver of its container below the machine's root once it is complete, and unmounts it
before the driver is unloaded. So the libraries tell which driver is installed.

Links below another root are relative to that root: Debian's libnvidia-ml.so.1 is a link to /etc/alternatives, which
leads back.
"""

from __future__ import annotations

import os
from typing import Final

LIBRARY: Final = "libnvidia-ml.so.1"
OPERATORS: Final = "run/nvidia/driver"
"""Where the operator mounts the driver of its container, below the machine's root."""
_FOLDERS: Final = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "lib")
_MOST_LINKS: Final = 40


def installed_root(said: str) -> str:
    """The configured folder, or the operator's below it if only that one has a driver."""
    if file_below(said, LIBRARY) is not None:
        return said
    theirs = f"{said.rstrip('/')}/{OPERATORS}"
    return said if file_below(theirs, LIBRARY) is None else theirs


def library_below(driver_root: str) -> str | None:
    """Its path, without links; just its name for `/`, where the loader searches itself; None: there is none."""
    return file_below(driver_root, LIBRARY) if driver_root.strip("/.") else LIBRARY


def file_below(driver_root: str, library: str) -> str | None:
    """The path of a library of the driver, without links; None: there is none."""
    paths = (_followed(driver_root.rstrip("/"), f"{folder}/{library}") for folder in _FOLDERS)
    return next((path for path in paths if path is not None and os.path.isfile(path)), None)  # noqa: PTH113  as above


def _followed(root: str, path: str) -> str | None:
    """The target of `path` below `root`, never outside it; None if links form a cycle."""
    done: list[str] = []
    waiting = path.split("/")[::-1]
    for _ in range(_MOST_LINKS):
        target = _until_a_link(root, done, waiting)
        if target is None:
            return "/".join((root, *done))
        if target.startswith("/"):
            done.clear()
        waiting += target.split("/")[::-1]
    return None


def _until_a_link(root: str, done: list[str], waiting: list[str]) -> str | None:
    """Resolves components up to the next link, and returns its target; None if there is no further link."""
    while waiting:
        name = waiting.pop()
        if name == "..":
            del done[-1:]
        elif name not in ("", "."):
            try:
                return os.readlink("/".join((root, *done, name)))  # noqa: PTH115  pathlib is memory
            except OSError:  # no link, or missing, which the caller detects
                done.append(name)
    return None
