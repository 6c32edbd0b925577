"""Runs `partage`, in this process by default, or as a process of its own, as a shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from partage_cli.main import main
from support import command_line

PARTAGE: Final = (sys.executable, "-m", "partage_cli")


def environment(**more: str) -> dict[str, str]:
    """The environment without settings of partage; it finds our packages even if they are not installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "120"} | more


def partage(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command_line.run(main, ["partage", "--root", str(root), *arguments], environment())


def process(root: Path, *arguments: str, start: str = 'exec "$@"') -> subprocess.CompletedProcess[str]:
    """Runs a process to its end. `start` is the shell command that starts it, for limits and closed descriptors."""
    return subprocess.run(
        ["sh", "-c", start, "sh", *PARTAGE, "--root", root, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
