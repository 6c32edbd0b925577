"""The real kubectl, as one identity: for users' commands, and for exec, which needs a streaming protocol."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.client.api import Api
from rig.errors import NeverHappened, RigError
from rig.patience import patience_s

_WITHIN_S: Final = 60.0


@dataclass(frozen=True)
class Ran:
    """Result of a command; the status of an exec is that of the command in the pod."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    """A program, a kubeconfig and a home for its cache. The machine's own settings have no effect."""

    program: Path
    kubeconfig: Path
    home: Path

    def run(self, *arguments: str, stdin: str = "", within_s: float = _WITHIN_S) -> str:
        """The command's output; raises `RigError` with its error message."""
        ran = self.tried(*arguments, stdin=stdin, within_s=within_s)
        if ran.status != 0:
            raise RigError(f"kubectl {' '.join(arguments)}: status {ran.status}: {ran.err.strip()}")
        return ran.out

    def tried(self, *arguments: str, stdin: str = "", within_s: float = _WITHIN_S) -> Ran:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *arguments]
        try:
            done = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=patience_s(within_s),
                check=False,
                cwd=self.home,
                env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            )
        except subprocess.TimeoutExpired as late:
            raise NeverHappened(f"kubectl {' '.join(arguments)}: did not end within {late.timeout:.0f} s") from late
        return Ran(done.returncode, done.stdout, done.stderr)

    def apply(self, manifests: str) -> str:
        return self.run("apply", "-f", "-", stdin=manifests)


@dataclass(frozen=True)
class Speaker:
    """An identity's clients. Objects that a test gets from a speaker keep using that identity."""

    api: Api
    kubectl: Kubectl
