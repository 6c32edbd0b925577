"""What the parent asks of a child that checks."""

from __future__ import annotations

from msgspec import Struct

from partage_plugins.testing.subject import Subject


class Question(Struct, frozen=True, kw_only=True):
    """Which checks to run on which subject."""

    subject: Subject
    checks: tuple[str, ...]
    deadly: tuple[tuple[str, str], ...]
    """Plugins and hooks that ended earlier processes."""
    box: int
    """The descriptor of the black box."""
    folder: str
    """Where nodes' files may be written."""
    results: str
    """The file that results are appended to."""
