"""The results of checks. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Severity(enum.Enum):
    """The severity of a finding, in ascending order."""

    OK = "ok"
    UNKNOWN = "not checked"
    """The check could not be made; `found` says why."""
    WARNING = "warning"
    """It works now, but will cause trouble."""
    WRONG = "wrong"
    """Partage does not work, or does not protect."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of one check, for people and programs."""

    check: str
    """The check's stable name."""
    status: Severity
    found: str
    looked_at: tuple[str, ...] = ()
    advice: str = ""
    """What to do; empty if nothing."""


@dataclass(frozen=True)
class About:
    """A factory of one check's findings: `About("driver", looked_at).wrong("…", do="…")`."""

    check: str
    looked_at: tuple[str, ...] = ()

    def ok(self, found: str) -> Finding:
        return Finding(check=self.check, status=Severity.OK, found=found, looked_at=self.looked_at)

    def unknown(self, found: str, *, do: str = "") -> Finding:
        return Finding(check=self.check, status=Severity.UNKNOWN, found=found, looked_at=self.looked_at, advice=do)

    def warning(self, found: str, *, do: str) -> Finding:
        return Finding(check=self.check, status=Severity.WARNING, found=found, looked_at=self.looked_at, advice=do)

    def wrong(self, found: str, *, do: str) -> Finding:
        return Finding(check=self.check, status=Severity.WRONG, found=found, looked_at=self.looked_at, advice=do)


def worst(findings: Iterable[Finding]) -> Severity:
    order = list(Severity)
    return max((each.status for each in findings), key=order.index, default=Severity.OK)
