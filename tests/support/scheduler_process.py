"""Our scheduler as a process against a real API server; tests kill, freeze and restart it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rig.patience import patience_s


class SchedulerProcess:
    def __init__(
        self, kubeconfig: Path, root: Path, *flags: str, name: str = "scheduler", module: str = "partage_scheduler"
    ) -> None:
        """`module` may be another daemon in the scheduler's folder."""
        self._log = root / f"{name}.log"
        self._command = [sys.executable, "-P", "-m", module, "--kubeconfig", str(kubeconfig)]
        self._command += ["--root", str(root), *flags]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> Mapping[str, str]:
        return os.environ

    def start(self, *flags: str) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*self._command, *flags], stderr=log, stdout=log, env=self.env)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs, or before it was ever started."""
        return None if self._process is None else self._process.poll()

    @property
    def is_running(self) -> bool:
        """Whether the last started process still runs."""
        return self._process is not None and self.status is None

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(patience_s())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def once(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run another process to its end."""
        return subprocess.run(
            [*self._command, *flags], capture_output=True, text=True, check=False, timeout=patience_s()
        )
