"""The output of ``partage doctor`` and ``partage audit``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click

from partage_cli.doctor.findings import Finding, Severity, worst
from partage_cli.main import FOUND_WRONG, colour
from partage_cli.tables import as_json, printable

_COLOURS: Final = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.WRONG: "red", Severity.UNKNOWN: "cyan"}
_INDENT: Final = " " * 4


def as_text(findings: Sequence[Finding], *, wide: bool) -> str:
    """A line for each finding with its advice below; `looked_at` is shown for warnings and faults, or if `wide`."""
    width = max((len(each.check) for each in findings), default=0)
    return "".join(f"{line}\n" for each in findings for line in _lines(each, width, wide=wide))


def report(findings: Sequence[Finding]) -> dict[str, object]:
    """JSON output; docs/troubleshooting.md documents the shape."""
    rows = [
        {
            "check": each.check,
            "status": each.status.value,
            "found": each.found,
            "looked_at": each.looked_at,
            "advice": each.advice or None,
        }
        for each in findings
    ]
    return {"status": worst(findings).value, "findings": rows}


def tell(findings: Sequence[Finding], output: str) -> int:
    """Print findings in the format of `-o`; returns the exit code."""
    if output == "json":
        click.echo(as_json(report(findings)), nl=False)
    else:
        click.echo(as_text(findings, wide=output == "wide"), nl=False, color=colour())
        click.echo(summary(findings), err=True)
    return FOUND_WRONG if worst(findings) is Severity.WRONG else 0


def summary(findings: Iterable[Finding]) -> str:
    """`2 wrong, 1 warning, 3 not checked, 9 ok`."""
    statuses = [each.status for each in findings]
    return ", ".join(
        f"{statuses.count(status)} {status.value}"
        for status in (Severity.WRONG, Severity.WARNING, Severity.UNKNOWN, Severity.OK)
    )


def _lines(finding: Finding, width: int, *, wide: bool) -> Iterator[str]:
    status = click.style(f"{finding.status.value:<11}", fg=_COLOURS[finding.status])
    yield f"{status}  {finding.check:<{width}}  {printable(finding.found)}"
    if wide or finding.status in {Severity.WRONG, Severity.WARNING}:
        yield from (f"{_INDENT}looked at  {printable(each)}" for each in finding.looked_at)
    if finding.advice:
        yield f"{_INDENT}do         {printable(finding.advice)}"
