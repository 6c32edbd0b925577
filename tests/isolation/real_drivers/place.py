"""A node's driver and the library that was installed for it, without a node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from partage_isolation.library import Installed, install
from partage_isolation.library.objects import CUDA, NVML, OBJECTS, sources
from rig.patience import patience_s

BRANCHES: Final = ("470", "535", "550")
"""The first is of a CUDA before 12, which has only the first form of cuGetProcAddress."""
LIBRARIES: Final = {CUDA: "cuda.def", NVML: "nvml.def"}
_TESTS: Final = Path(__file__).parents[2]
_PROGRAMS: Final = Path(__file__).parent / "programs"
_FOLDER: Final = "usr/lib/x86_64-linux-gnu"
_WITHOUT_DEVICES: Final = ("setpriv", "--bounding-set=-mknod", "--") if os.geteuid() == 0 else ()
"""A real driver run by root creates /dev/nvidiactl, and this machine would seem to have cards from then on."""


@dataclass(frozen=True)
class Route:
    """A result of cuGetProcAddress by our table."""

    name: str
    version: int
    per_thread: bool
    symbol: str


@dataclass(frozen=True)
class Place:
    root: Path
    """The driver's root."""
    installed: Installed

    @property
    def folder(self) -> Path:
        return self.root / _FOLDER

    @cached_property
    def exports(self) -> Mapping[str, frozenset[str]]:
        """Exports of the driver's libraries that programs may look up, by nm: without functions for debuggers."""
        return {library: frozenset(_exports(self.folder / library)) for library in LIBRARIES}

    def environment(self, *, ours: bool) -> dict[str, str]:
        """The environment of a process in a container with the driver, with our library or without it."""
        found = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(self.folder), "PYTHONPATH": str(_TESTS)}
        preload = ":".join(str(self.installed.folder / name) for name in OBJECTS)
        return {**found, "LD_PRELOAD": preload} if ours else found

    def told(
        self, program: str, *words: str | Path, ours: bool = True, asked: object = None, **environment: str
    ) -> Any:
        """The JSON that a program of this folder prints."""
        command = [sys.executable, _PROGRAMS / program, *words]
        return told(command, {**self.environment(ours=ours), **environment}, asked)


def installed(root: Path, folder: Path) -> Place:
    return Place(root, install(folder / "lib", root))


def told(command: list[str | Path], environment: Mapping[str, str], asked: object = None) -> Any:
    done = subprocess.run(
        [*_WITHOUT_DEVICES, *command],
        env=environment,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=patience_s(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return json.loads(done.stdout)


def names(library: str) -> frozenset[str]:
    """All names of our table."""
    text = (sources().with_name("driver") / LIBRARIES[library]).read_text()
    return frozenset(re.findall(r"^[A-Z]+\((?:.*, )?(\w+)\)$", text, re.MULTILINE))


def routes() -> list[Route]:
    text = (sources().with_name("driver") / "cuda.def").read_text()
    found = re.findall(r"^ROUTE\((\w+), (\d+), ([01]), (\w+)\)$", text, re.MULTILINE)
    return [Route(name, int(version), per_thread == "1", symbol) for name, version, per_thread, symbol in found]


def hooks() -> frozenset[str]:
    text = (sources() / "hooks/hooks.def").read_text()
    return frozenset(re.findall(r"^(?:GATED_)?HOOK\((\w+)\)", text, re.MULTILINE))


def symbols(library: Path) -> dict[str, int]:
    """Functions that a library's dynamic symbol table defines, with their offsets."""
    said = subprocess.check_output(["readelf", "-W", "--dyn-syms", library], text=True)
    rows = [fields for fields in map(str.split, said.splitlines()) if len(fields) == 8 and fields[3] == "FUNC"]
    return {fields[7]: int(fields[1], 16) for fields in rows if fields[6] != "UND"}


def _exports(library: Path) -> list[str]:
    said = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True)
    found = [line.split()[-1].partition("@")[0] for line in said.splitlines()]
    return [name for name in found if re.match(r"cu[A-Z]|nvml", name)]
