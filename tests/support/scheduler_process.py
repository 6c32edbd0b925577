"""Our scheduler as a process against a real API server; tests kill, freeze and restart it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, add_pair
from rig.patience import patience_s


def new_key(root: Path) -> Ed25519PrivateKey:
    """A signing key for the scheduler with that root."""
    key = Ed25519PrivateKey.generate()
    add_pair(KeyFolders.at_root(root), key)
    return key


class SchedulerProcess:
    def __init__(
        self,
        kubeconfig: Path,
        root: Path,
        *flags: str,
        name: str = "scheduler",
        module: str = "partage_scheduler",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`module` may be another daemon in the scheduler's folder; `env` is added to this process's environment."""
        self.log = root / f"{name}.log"
        self._command = [sys.executable, "-P", "-m", module, "--kubeconfig", str(kubeconfig)]
        self._command += ["--root", str(root), *flags]
        self.env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *flags: str) -> None:
        with self.log.open("ab") as log:
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
        return self.log.read_text(errors="replace") if self.log.exists() else ""

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


@contextmanager
def shown(process: SchedulerProcess) -> Generator[SchedulerProcess]:
    """Kill it at the end, and print the end of its log for the report of a failure."""
    try:
        yield process
    finally:
        process.kill()
        sys.stdout.write(process.said[-6000:])
