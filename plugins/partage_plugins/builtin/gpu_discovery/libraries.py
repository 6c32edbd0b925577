"""Finds libnvidia-ml below a driver's root: the folders where distributions and driver containers put it."""

from __future__ import annotations

import os
from typing import Final

LIBRARY: Final = "libnvidia-ml.so.1"
_FOLDERS: Final = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "lib")


def library_below(driver_root: str) -> str | None:
    """Its path; its bare name for `/`, where the loader looks in its own way; None where there is none."""
    if not driver_root.strip("/."):
        return LIBRARY
    paths = (os.path.join(driver_root, folder, LIBRARY) for folder in _FOLDERS)  # noqa: PTH118  pathlib is memory
    return next(filter(os.path.isfile, paths), None)
