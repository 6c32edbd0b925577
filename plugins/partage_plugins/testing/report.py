"""What came of the checks."""

from __future__ import annotations

from msgspec import Struct

from partage_plugins.testing.subject import Subject


class Result(Struct, frozen=True, kw_only=True):
    """What came of one check."""

    check: str
    passed: bool
    why: str = ""
    """Why it did not pass: what was promised, which hook, and what it did instead."""
    trace: str = ""
    """Where in the plugin, if that is known."""


class Report(Struct, frozen=True):
    """What came of all checks that apply to a subject, in their order."""

    results: tuple[Result, ...]

    @property
    def failed(self) -> tuple[Result, ...]:
        """The checks that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    def of(self, check: str) -> Result:
        """The result of that check."""
        return next(result for result in self.results if result.check == check)


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
