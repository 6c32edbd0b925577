"""The folder made by `make release` for this machine and this Python, and the commands in its README."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from rig.rig import CHECKOUT
from support import page
from support.releases import bundle

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class ReleaseFolder:
    path: Path

    @property
    def version(self) -> str:
        return self.path.name

    def commands(self, part: str) -> list[str]:
        """Commands of a part of the README, line by line."""
        return page.commands(self.path / "README.md")[part]


def release_folder(out: Path, checkout: Path = CHECKOUT) -> ReleaseFolder:
    machine = os.uname().machine
    words = ("release", "--arch", machine, "--python", PYTHON, "--out", str(out))
    *_, path = bundle(checkout, *words).splitlines()
    return ReleaseFolder(Path(path))
