"""Reads the broker's findings, and reports each new one once as a readable Event on the Node.

Between reads only the mtimes of the folder and its files are checked. Findings that an earlier advertiser reported are
reported again: a file exists only as long as its problem, and a duplicate is better than a miss.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from partage_advertiser.condition_changes import ConditionChange
from partage_base.daemon.logs import Repeats
from partage_base.findings import FINDINGS_FOLDER, MAX_BYTES, SUFFIX, Findings, NoFindings, Problem, decode_findings

_MOST_FILES: Final = 1024
_log: Final = structlog.get_logger()
Stamp = tuple[int, int, int]


class FindingsFolder:
    """The broker's folder of findings, below the node's root."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FINDINGS_FOLDER
        self._seen: dict[str, Stamp] = {}
        self._told: dict[str, frozenset[Problem]] = {}
        self._repeats = Repeats(every_s=60)

    def news(self) -> tuple[ConditionChange, ...]:
        """Findings that appeared since the last call."""
        files = self._files()
        changed = [name for name, stamp in files.items() if self._seen.get(name) != stamp]
        self._told = {name: told for name, told in self._told.items() if name in files}
        self._seen = files
        return tuple(happening for name in sorted(changed) for happening in self._of_file(name))

    def _files(self) -> dict[str, Stamp]:
        try:
            with os.scandir(self._folder) as entries:
                found = (entry for entry in entries if _is_ours(entry))
                return {entry.name: _stamp(entry.stat()) for entry, _ in zip(found, range(_MOST_FILES), strict=False)}
        except FileNotFoundError:  # no findings so far, or a file was removed meanwhile
            return {}
        except OSError as error:
            self._say(str(self._folder), str(error))
            return self._seen

    def _of_file(self, name: str) -> Iterator[ConditionChange]:
        try:
            with (self._folder / name).open("rb") as file:
                findings = decode_findings(file.read(MAX_BYTES + 1))
        except FileNotFoundError:
            return
        except (OSError, NoFindings) as error:
            self._say(name, str(error))
            return
        told = self._told.get(name, frozenset())
        self._told[name] = told | frozenset(findings.found)
        for found in findings.found:
            if found not in told:
                yield happening_of(findings, found)

    def _say(self, name: str, why: str) -> None:
        self._repeats.say("what the broker found wrong can't be read", key=name, file=name, why=why)


def happening_of(findings: Findings, found: Problem) -> ConditionChange:
    if findings.pod is None:
        return ConditionChange("Warning", found.kind, f"{found.sentence[:1].upper()}{found.sentence[1:]}.")
    who = f"container {findings.container} of pod {findings.pod.namespace}/{findings.pod.name}"
    end = "; it is stopped" if found.stops else ""
    return ConditionChange("Warning", found.kind, f"In {who} {found.sentence}{end}.")


def _is_ours(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(SUFFIX) and not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_ino, state.st_mtime_ns, state.st_size
