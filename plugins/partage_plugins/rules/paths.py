"""Paths as a runtime takes them, and whether one lies below another. Pure."""

from __future__ import annotations

import posixpath


def clean_path(path: str) -> str:
    """The path from the root, without doubled slashes, `.` and `..`; what is not absolute begins at the root."""
    if path.startswith("/") and not path.endswith("/") and "//" not in path and "/." not in path:
        return path  # as nearly every one
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def is_below(path: str, folder: str) -> bool:
    """Whether a clean path is that folder or lies below it."""
    return folder in ("/", path) or path.startswith(folder + "/")
