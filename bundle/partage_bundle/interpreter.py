"""Runs the tree's own interpreter during the build: it compiles modules and packs layers.

Its version and its zlib are locked, unlike the building machine's: so the same commit gives the same bits everywhere.
It is started by its own loader, since its final location does not exist yet.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from partage_bundle import debian, recipe
from partage_bundle.errors import BundleError, StepFailed
from partage_bundle.process import run

# The order of a set, which may be a constant of a module, depends on the seed.
_ENV: Final = {"PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}
_PACK: Final = (
    "import gzip, shutil, sys\n"
    # The highest level takes four times as long to save one percent.
    "with gzip.GzipFile('', 'wb', 6, sys.stdout.buffer, 0) as packed:\n"
    "    shutil.copyfileobj(sys.stdin.buffer, packed, 1 << 20)\n"
)


@dataclass(frozen=True)
class Interpreter:
    words: tuple[str, ...]

    def compile(self, folder: Path) -> None:
        """Compiles every module below; the compiled form is used without checking the source's time."""
        words = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(folder), ".")
        run((*self.words, *words), folder=folder, env=_ENV)

    @contextmanager
    def packed(self, into: Path) -> Generator[IO[bytes]]:
        """Compresses what is written to it into the file, with no name and no time."""
        with into.open("wb") as file:
            words, env = (*self.words, "-c", _PACK), {**os.environ, **_ENV}
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=file, env=env)
            assert child.stdin is not None  # noqa: S101  it was asked for
            try:
                with child.stdin as pipe:
                    yield pipe
            except BrokenPipeError:
                pass  # it exited early; its status tells that it failed
            finally:
                status = child.wait()
        if status:
            raise StepFailed(f"packing {into.name} ended with {status}; is the disk full?")


def here() -> Interpreter:
    """The interpreter of the building machine, for any target."""
    machine = recipe.MACHINES.get(os.uname().machine)
    if machine is None:
        raise BundleError(f"bundles are built on {' or '.join(recipe.MACHINES)}; this machine is {os.uname().machine}")
    runtime = debian.runtime(machine)
    loader = runtime / "lib" / machine.loader
    return Interpreter((str(loader), "--library-path", str(runtime / "lib"), str(runtime / "bin/python3"), "-s", "-P"))
