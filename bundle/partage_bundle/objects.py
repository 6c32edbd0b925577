"""Uses patchelf to read and change how programs and libraries find others."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_bundle import elf
from partage_bundle.debian import copy
from partage_bundle.errors import TreeUnfit
from partage_bundle.process import BIN, run
from partage_bundle.recipe import Machine

_PATCHELF: Final = BIN / "patchelf"
_HEAD_BYTES: Final = 64
_PROGRAM: Final = "bin/python3"


def bind(tree: Path, machine: Machine, prefix: str) -> None:
    """Makes the interpreter start by the tree's own loader, and search libraries in the tree first."""
    words = ("--set-interpreter", f"{prefix}/lib/{machine.loader}", "--force-rpath", "--set-rpath", f"{prefix}/lib")
    unbound = tree / _PROGRAM
    bound = unbound.with_suffix(".bound")
    copy(unbound, bound)
    run((_PATCHELF, *words, bound))
    bound.rename(unbound)


def open_to_the_interpreter(folder: Path) -> None:
    """Turns DT_RUNPATH into DT_RPATH: with the former an object bypasses the interpreter's and searches the system."""
    for path in _paths(folder):
        if searched := run((_PATCHELF, "--print-rpath", path)).strip():
            run((_PATCHELF, "--force-rpath", "--set-rpath", searched, path))


def shed(folder: Path) -> None:
    """Removes all that is not loaded: a fifth of a tree would be for debuggers."""
    for path in _paths(folder):
        path.write_bytes(elf.loaded(path.read_bytes()))


def need_fit(tree: Path, machine: Machine) -> None:
    """Raises `TreeUnfit` if an object needs something that the tree does not have."""
    lines = elf.complaints({str(path.relative_to(tree)): _facts(path) for path in _paths(tree)}, machine)
    if lines:
        raise TreeUnfit(f"{len(lines)} objects would not load: " + "; ".join(lines[:10]))


def _paths(folder: Path) -> list[Path]:
    """All objects except the preload library's, which are loaded into containers."""
    every = [path for path in sorted(folder.rglob("*")) if path.is_file() and "library/objects" not in str(path)]
    return [path for path in every if _machine(path) is not None]


def _machine(path: Path) -> int | None:
    with path.open("rb") as file:
        return elf.machine_of(file.read(_HEAD_BYTES))


def _facts(path: Path) -> elf.Facts:
    return elf.Facts(
        _machine(path) or 0,
        tuple(run((_PATCHELF, "--print-needed", path)).split()),
        tuple(each for each in run((_PATCHELF, "--print-rpath", path)).strip().split(":") if each),
    )
