"""Folders and environment of these tests' programs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import OBJECTS, built
from rig.patience import patience_s

PROGRAMS: Final = Path(__file__).parent / "programs"
VERSION: Final = 12340
"""The version that the driver of these tests reports."""
_DRIVERS: Final = {"driver.c": "libcuda.so.1", "management.c": "libnvidia-ml.so.1"}
_RETURNS: Final = ("-fno-optimize-sibling-calls",)
"""The driver identifies its caller by the return address."""
_OTHERS: Final = frozenset((*_DRIVERS, "asks.c", "early.c", "needed.c", "plain.c"))


@dataclass(frozen=True)
class Stage:
    """Folders: of the programs, of the driver, and of the library, which is in `place`/lib."""

    programs: Path
    driver: Path
    place: Path

    @property
    def objects(self) -> list[Path]:
        """The objects, in the order in which processes load them."""
        return [self.place / "lib" / name for name in OBJECTS]

    def environment(self, *, driver: bool = True) -> dict[str, str]:
        """The environment of a process that loads the library, with the driver on the dynamic linker's path."""
        found = {"PATH": os.environ["PATH"], "LD_PRELOAD": ":".join(map(str, self.objects))}
        return {**found, "LD_LIBRARY_PATH": str(self.driver)} if driver else found

    def lines(
        self,
        program: str,
        *words: str | Path,
        driver: bool = True,
        before: Sequence[str] = (),
        asked: str = "",
        **environment: str,
    ) -> list[str]:
        """Output of a program, which must exit with 0 and print nothing on stderr."""
        command, env = self.started(
            [*before, self.programs / program, *words], {**self.environment(driver=driver), **environment}
        )
        done = subprocess.run(
            command,
            env=env,
            input=asked,
            capture_output=True,
            text=True,
            timeout=patience_s(),
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout.splitlines()

    def started(
        self, command: Sequence[str | Path], environment: Mapping[str, str]
    ) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        """The command and environment that run it."""
        return command, environment

    def moved(self, place: Path) -> Stage:
        """The library at another place, with the driver beside it."""
        copy_library(place)
        shutil.copytree(self.driver, place / "driver")
        return replace(self, place=place)


def compiled(source: str, target: Path, *options: str, compiler: str = "cc") -> Path:
    command = [
        *shlex.split(compiler),
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        str(target),
        str(PROGRAMS / source),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def copy_library(place: Path, library: Path | None = None) -> None:
    """As the installer leaves it."""
    (place / "lib").mkdir(parents=True)
    for name in OBJECTS:
        shutil.copy((library or built()) / name, place / "lib" / name)


def made(folder: Path, *, compiler: str = "cc", library: Path | None = None) -> Stage:
    stage = Stage(folder / "programs", folder / "driver", folder / "partage")
    stage.programs.mkdir()
    stage.driver.mkdir()
    copy_library(stage.place, library)
    for source, name in _DRIVERS.items():
        compiled(
            source, stage.driver / name, "-shared", "-fPIC", *_RETURNS, f"-Wl,-soname,{name}", "-ldl", compiler=compiler
        )
    for path in sorted(PROGRAMS.glob("*.c")):
        if path.name not in _OTHERS:
            compiled(path.name, stage.programs / path.stem, "-pthread", "-ldl", compiler=compiler)
    compiled("early.c", stage.programs / "early.so", "-shared", "-fPIC", "-ldl", compiler=compiler)
    linked = (f"-L{stage.driver}", "-l:libcuda.so.1", "-ldl")
    compiled("needed.c", stage.programs / "needed", *linked, compiler=compiler)
    for folder_or_file in (folder, *folder.rglob("*")):
        folder_or_file.chmod(folder_or_file.stat().st_mode | 0o055)  # other users run them too
    return stage
