"""Runs a command on the host with a timeout, and captures its output."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Final

from partage_cli.installation.errors import StepFailed

ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
"""For programs that get nothing of our own."""
SHOWN: Final = 300
"""How much of a program's output is shown to people."""


def run(
    *argv: str, within_s: float, environment: Mapping[str, str] | None = None, folder: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Raises `StepFailed` if it can't be started or takes too long; the caller checks the exit status."""
    try:
        return subprocess.run(  # noqa: S603  of the host, or of a tree
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=within_s,
            env=environment,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        raise StepFailed(f"`{' '.join(argv)}` did not end within {within_s:g} s") from None
    except OSError as error:
        raise StepFailed(f"`{' '.join(argv)}` cannot run: {error.strerror}") from None
