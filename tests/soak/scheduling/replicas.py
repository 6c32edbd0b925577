"""Two schedulers that want the same lead: killed, frozen and thawed, and started again whenever they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


class Replica:
    def __init__(self, name: str, kubeconfig: Path, root: Path, *, lease_s: float) -> None:
        """A leader gives up by itself after two thirds of the Lease."""
        self.name, self._log = name, root / f"{name}.log"
        terms = {"--lease-s": lease_s, "--renew-s": lease_s * 2 / 3, "--retry-s": lease_s / 8}
        self._command = (
            *(sys.executable, "-m", "partage_scheduler", "--kubeconfig", str(kubeconfig), "--root", str(root)),
            *(word for flag, value in terms.items() for word in (flag, str(value))),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stderr=log, stdout=log, env=os.environ)
        self.starts += 1

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """At once; it is waited for, and started again by whoever looks after it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def status(self) -> int | None:
        """With which it ended; None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def leads_as(self, identity: str) -> bool:
        return bool(identity) and identity in self.said
