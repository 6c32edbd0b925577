"""Programs for aarch64 on this machine: their compiler and their emulator."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from isolation.library.stage import Stage
from partage_base.built_once import shared
from partage_bundle import native, recipe
from partage_bundle.errors import NotFetched
from rig.errors import MachineUnfit
from rig.programs import ensure
from support import builds
from support.builds import ROOT

_TARGET: Final = "aarch64-linux-gnu.2.36"
"""The libc of the emulated machine; the library itself is built for an older one, as it is released."""
_CACHES: Final = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
SIMULATION: Final = ("LTO=", "MIXED=", "CFLAGS=-O2 -g -DARENA_BYTES=0x200000000ull")
"""Without options of gcc alone; and with few addresses, since the emulator writes down every page of them."""


@dataclass(frozen=True)
class Emulator:
    program: Path
    machine: Path
    """The machine's root, which contains only the libc."""

    def started(
        self, command: Sequence[str | Path], environment: Mapping[str, str]
    ) -> tuple[list[str | Path], dict[str, str]]:
        """Only the emulated program gets the environment: the emulator itself would obey LD_PRELOAD."""
        words = [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
        return [self.program, "-L", self.machine, *words, *command], {"PATH": os.environ["PATH"]}


@dataclass(frozen=True)
class EmulatedStage(Stage):
    emulator: Emulator

    def started(
        self, command: Sequence[str | Path], environment: Mapping[str, str]
    ) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        return self.emulator.started(command, environment)


def emulator(folder: Path) -> Emulator:
    """Skip the test if Debian's packages are unavailable; `folder` becomes the machine."""
    try:
        programs = ensure("emulator-aarch64", "libc-aarch64")
    except MachineUnfit as unfit:
        pytest.skip(str(unfit))
    (folder / "lib").symlink_to(programs["libc.so.6@libc-aarch64"].parent)
    return Emulator(programs["qemu-aarch64@emulator-aarch64"], folder)


def compiler() -> str:
    """A compiler as shell words; skips the test if none is available."""
    caches = [f"{name}={shared().with_name('zig')}" for name in _CACHES]
    try:
        return shlex.join(["env", *caches, str(native.compiler()), "cc", "-target", _TARGET])
    except NotFetched as error:
        pytest.skip(str(error))


def library() -> Path:
    """The folder of the released objects."""
    return native.objects(recipe.MACHINES["aarch64"])


def made(sources: str, *words: str, only: Sequence[str] = ()) -> Path:
    """The folder of objects that a folder's makefile built: all, or some."""
    return builds.made(ROOT / sources, f"CC={compiler()}", *words, *(f"{builds.OUT}/{name}" for name in only))
