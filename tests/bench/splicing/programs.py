"""Builds the Go programs of this folder, with the rig's Go and caches. Their modules are pinned in go.sum."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from rig.programs import golang
from rig.programs.cache import cache_of
from rig.programs.steps import Lines, to_stderr

SOURCE: Final = Path(__file__).with_name("go")
BUILT: Final = Path(__file__).resolve().parents[3] / ".cache/bench/splicing"
_WITHIN_S: Final = 600.0


def build() -> Path:
    """Builds `client` and `relay` and returns their folder; quick if nothing has changed."""
    cache, teller = cache_of(os.environ), Lines(to_stderr)
    go = golang.find_go(cache, teller)
    BUILT.mkdir(parents=True, exist_ok=True)
    teller.line("bench crishim: building its Go programs")
    with tempfile.TemporaryDirectory() as scratch:
        env = {**go.environment(cache, Path(scratch)), "CGO_ENABLED": "0"}
        flags = ("-mod=readonly", "-modcacherw", "-trimpath", "-buildvcs=false")
        argv = [str(go.program), "build", *flags, "-o", f"{BUILT}/", "./client", "./relay"]
        done = subprocess.run(argv, cwd=SOURCE, env=env, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    if done.returncode:
        raise SystemExit(f"bench crishim: `go build` in {SOURCE} failed; is there a network?\n{done.stderr}")
    return BUILT
