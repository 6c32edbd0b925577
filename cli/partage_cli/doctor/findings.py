"""What a check found. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Severity(enum.Enum):
    """How bad it is, from the best to the worst."""

    OK = "ok"
    UNKNOWN = "not checked"
    """We could not see; `found` says why."""
    WARNING = "warning"
    """Works, and will bite."""
    WRONG = "wrong"
    """Keeps partage from working, or from protecting."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of one check, for people and programs."""

    check: str
    """A stable name."""
    status: Severity
    found: str
    looked_at: tuple[str, ...] = ()
    advice: str = ""
    """What to do; empty where there is nothing to do."""


@dataclass(frozen=True)
class About:
    """Findings of one check: `About("driver", looked_at).wrong("…", do="…")`."""

    check: str
    looked_at: tuple[str, ...] = ()

    def ok(self, found: str) -> Finding:
        return Finding(check=self.check, status=Severity.OK, found=found, looked_at=self.looked_at)

    def unknown(self, found: str, *, do: str = "") -> Finding:
        return Finding(check=self.check, status=Severity.UNKNOWN, found=found, looked_at=self.looked_at, advice=do)

    def warning(self, found: str, *, do: str) -> Finding:
        return Finding(check=self.check, status=Severity.WARNING, found=found, looked_at=self.looked_at, advice=do)

    def wrong(self, found: str, *, do: str) -> Finding:
        """Does not work, or does not protect."""
        return Finding(check=self.check, status=Severity.WRONG, found=found, looked_at=self.looked_at, advice=do)


def worst(findings: Iterable[Finding]) -> Severity:
    order = list(Severity)
    return max((each.status for each in findings), key=order.index, default=Severity.OK)
