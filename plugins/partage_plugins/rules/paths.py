"""Paths as a runtime interprets them, and whether one lies below another. Pure."""

from __future__ import annotations

import posixpath


def clean_path(path: str) -> str:
    """Normalizes a path: no doubled slashes, `.` and `..`; a relative path is taken from the root."""
    if path.startswith("/") and not path.endswith("/") and "//" not in path and "/." not in path:
        return path  # nearly always
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def is_below(path: str, folder: str) -> bool:
    """Whether a normalized path is that folder or lies below it."""
    return folder in ("/", path) or path.startswith(folder + "/")
