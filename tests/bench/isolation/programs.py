"""Builds the C programs that try the library, once for each state of them."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).resolve().parents[3] / "isolation/preload/tests/programs"
_BUILT: Final = SOURCES.parents[3] / ".cache/preload-programs"


@cache
def programs() -> Path:
    return make(_BUILT, {})


def make(out: Path, flags: Mapping[str, str], *targets: str) -> Path:
    """Builds them into a folder, with variables of the Makefile such as CFLAGS set."""
    out.mkdir(parents=True, exist_ok=True)
    variables = [f"{name}={value}" for name, value in {"OUT": str(out), **flags}.items()]
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        argv = ["make", "-s", "-C", str(SOURCES), f"-j{os.cpu_count() or 1}", *variables, *targets]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the programs in {SOURCES} do not build:\n{done.stderr}")
    return out
