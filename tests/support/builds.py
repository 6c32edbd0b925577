"""What the makefiles of this checkout build for tests: once for each state of the C sources, for all checkouts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from partage_base.built_once import built_once, key_of

ROOT: Final = Path(__file__).resolve().parents[2]
_BUILDS: Final = ROOT / ".cache/built"
_READ: Final = tuple(
    ROOT / name for name in ("isolation/driver", "isolation/page", "isolation/preload", "simgpu/native")
)
"""Some makefiles read what others have."""
OUT: Final = "OUT"
"""Where it goes, in a target."""


def made(sources: Path, *words: str) -> Path:
    """The folder of what make builds there, told these words; a target is named as `OUT/name`."""
    key = key_of(str(sources.relative_to(ROOT)), *words, sources=(*_READ, sources))
    return built_once(key, _BUILDS / key, lambda folder: _make(sources, folder, words))


def _make(sources: Path, folder: Path, words: tuple[str, ...]) -> None:
    told = [f"{folder}/{word[len(OUT) + 1 :]}" if word.startswith(f"{OUT}/") else word for word in words]
    argv = ["make", "-s", "-C", str(sources), f"-j{os.cpu_count() or 1}", f"OUT={folder}", *told]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(folder / "objects", ignore_errors=True)
