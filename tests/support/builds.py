"""Builds by this checkout's makefiles for tests: once for each state of the C sources, shared by all checkouts."""

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
"""Sources that makefiles of other folders also read."""
OUT: Final = "OUT"
"""Placeholder for the output folder in a target."""


def made(sources: Path, *words: str) -> Path:
    """The folder with make's output for these words; a target is named `OUT/name`."""
    return _built(sources, words, is_of_objects=False)


def objects_of(sources: Path, *words: str) -> Path:
    """The folder of object files of that build."""
    return _built(sources, words, is_of_objects=True) / "objects"


def _built(sources: Path, words: tuple[str, ...], *, is_of_objects: bool) -> Path:
    kind = ("objects",) if is_of_objects else ()
    key = key_of(str(sources.relative_to(ROOT)), *kind, *words, sources=(*_READ, sources))

    def make(folder: Path) -> None:
        _make(sources, folder, words)
        if not is_of_objects:
            shutil.rmtree(folder / "objects", ignore_errors=True)

    return built_once(key, _BUILDS / key, make)


def _make(sources: Path, folder: Path, words: tuple[str, ...]) -> None:
    told = [f"{folder}/{word[len(OUT) + 1 :]}" if word.startswith(f"{OUT}/") else word for word in words]
    argv = ["make", "-s", "-C", str(sources), f"-j{os.cpu_count() or 1}", f"OUT={folder}", *told]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
