"""Runs checks in parallel, each in its own thread: one that hangs loses only its own findings.

A thread can't be killed, and a check that hangs does so inside the kernel. So the threads are daemon threads, which
never keep the process alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from partage_base.thread_safety import prepare_structs
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode

Check = Callable[[LocalNode], Iterable[Finding]]
DEADLINE_S: Final = 10.0


class _Run:
    def __init__(self, name: str, check: Check, node: LocalNode) -> None:
        self._name, self._check, self._node = name, check, node
        self._found: tuple[Finding, ...] = ()
        self._raised: Exception | None = None
        self._thread = threading.Thread(target=self._look, name=f"check {name}", daemon=True)
        self._thread.start()

    def findings(self, within_s: float) -> tuple[Finding, ...]:
        self._thread.join(max(0.0, within_s))
        if self._thread.is_alive():
            return (About(self._name).unknown("did not end in time: something it looked at hangs"),)
        if isinstance(self._raised, OSError):
            return (About(self._name).unknown(str(self._raised)),)
        if self._raised is not None:
            raise self._raised  # a defect of ours keeps its traceback
        return self._found

    def _look(self) -> None:
        try:
            self._found = tuple(self._check(self._node))
        except Exception as error:  # noqa: BLE001  raised again where the others are waited for
            self._raised = error


def run(checks: Mapping[str, Check], node: LocalNode, *, deadline_s: float = DEADLINE_S) -> list[Finding]:
    """All findings, in the order of the checks."""
    prepare_structs()
    until = time.monotonic() + deadline_s
    runs = [_Run(name, check, node) for name, check in checks.items()]
    return [finding for each in runs for finding in each.findings(until - time.monotonic())]
