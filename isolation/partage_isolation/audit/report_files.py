"""Writes findings as report files, one for each container or card; see `partage_base.findings`.

A resolved finding is kept for a while, so that occasional readers see it. Files of an earlier broker are kept as long.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import structlog

from partage_base.files import write_whole
from partage_base.findings import FINDINGS_FOLDER, MOST, SUFFIX, Findings, Problem, encode_findings
from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.audit.findings import Finding

KEPT_S: Final = 60.0
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_log: Final = structlog.get_logger()


class ReportFiles:
    def __init__(self, root: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = root / FINDINGS_FOLDER, clock
        self._written: dict[str, Findings] = {}
        self._due: dict[str, float] = {}
        """When each file is deleted, by name."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            self._due[path.name] = clock() + KEPT_S

    def show(self, standing: Iterable[Finding], containers: Mapping[str, ContainerFacts], *, stops: bool) -> None:
        """Write all open findings, with data of containers; `stops` says whether violations stop containers."""
        by_subject = dict[str, list[Finding]]()
        for finding in standing:
            by_subject.setdefault(finding.subject, []).append(finding)
        for subject, findings in by_subject.items():
            name = f"{_UNSAFE.sub('_', subject)}{SUFFIX}"
            self._due[name] = self._clock() + KEPT_S
            found = (Problem(each.kind, each.sentence, stops and each.stops) for each in findings)
            self._write(name, self._grown(name, subject, found, containers.get(subject)))
        self._drop()

    def _grown(self, name: str, subject: str, found: Iterable[Problem], facts: ContainerFacts | None) -> Findings:
        before = self._written.get(name, Findings(subject=subject))
        return Findings(
            subject=subject,
            pod=facts.pod if facts else before.pod,
            container=facts.container if facts else before.container,
            found=tuple(dict.fromkeys((*before.found, *found)))[:MOST],
        )

    def _write(self, name: str, findings: Findings) -> None:
        if self._written.get(name) == findings:
            return
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_whole(self._folder / name, encode_findings(findings), mode=0o644)
        except OSError as error:
            _log.error("failed to write a findings file; events will lack it", file=name, why=str(error))
            return
        self._written[name] = findings

    def _drop(self) -> None:
        for name in [name for name, due_s in self._due.items() if due_s <= self._clock()]:
            del self._due[name]
            self._written.pop(name, None)
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
