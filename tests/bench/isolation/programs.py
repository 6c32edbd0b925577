"""The C programs that exercise the library."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from support.builds import ROOT, made

SOURCES: Final = ROOT / "tests/preload/programs"


@cache
def programs() -> Path:
    return made(SOURCES)
