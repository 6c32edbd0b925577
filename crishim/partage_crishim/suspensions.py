"""What became of pods that an allocation suspends: a file, from which the advertiser publishes it.

It outlives the process, since its containers stay suspended, too; it ends with the node's boot, as they do.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import msgspec

from partage_base.files import write_whole
from partage_plugins.api import Allocation, PodUid
from partage_plugins.api.places import SUSPENDED_FILE
from partage_plugins.codecs.suspension import LONGEST_WHY, READ_REPORTS, Reports, SuspensionReport
from partage_plugins.errors import DecodeError


class SuspensionFile:
    def __init__(self, root: Path) -> None:
        self._path = root / SUSPENDED_FILE
        self._reports: Reports = {}
        self._written: Reports | None = None
        try:
            self._reports = READ_REPORTS.read(self._path.read_bytes())
            self._written = dict(self._reports)
        except (OSError, DecodeError):  # none yet, or damaged: all are reported again
            pass

    def put(self, allocation: Allocation, *, is_done: bool = False, why: str = "") -> None:
        why = why[:LONGEST_WHY]
        self._reports[allocation.pod] = SuspensionReport(gen=allocation.gen, is_done=is_done, why=why)

    def is_refused(self, allocation: Allocation) -> bool:
        """Whether this allocation can't be put in force, as its containers run on."""
        report = self._reports.get(allocation.pod)
        return report is not None and report.gen == allocation.gen and bool(report.why)

    def forget(self, uid: PodUid) -> None:
        self._reports.pop(uid, None)

    def keep(self, uids: Container[str]) -> None:
        """Keep the reports of pods that still have a file of an allocation; the others are gone or never changed."""
        self._reports = {uid: report for uid, report in self._reports.items() if uid in uids}

    def write(self) -> None:
        """Write the file if anything changed; without reports there is none. Raises `OSError`."""
        if self._reports == self._written:
            return
        if self._reports:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path, msgspec.json.encode(self._reports))
        else:
            self._path.unlink(missing_ok=True)
        self._written = dict(self._reports)
