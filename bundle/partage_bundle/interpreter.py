"""The tree's own interpreter at work while a tree is made: it compiles modules and packs layers.

Its version and its zlib are locked, those of the building machine are not: with it the same commit gives the same bits
everywhere. It is started by its own loader, since its final place is not there yet.
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

# The order of a set's members, which a module's constants may be, follows from the seed.
_ENV: Final = {"PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}
_PACK: Final = (
    "import gzip, shutil, sys\n"
    # The highest level takes four times as long for one part in a hundred.
    "with gzip.GzipFile('', 'wb', 6, sys.stdout.buffer, 0) as packed:\n"
    "    shutil.copyfileobj(sys.stdin.buffer, packed, 1 << 20)\n"
)


@dataclass(frozen=True)
class Interpreter:
    words: tuple[str, ...]

    def compile(self, folder: Path) -> None:
        """Gives every module below its compiled form, which is used without a look at the source's time."""
        words = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(folder), ".")
        run((*self.words, *words), folder=folder, env=_ENV)

    @contextmanager
    def packed(self, into: Path) -> Generator[IO[bytes]]:
        """What is written to it goes into the file, compressed, with no name and no time."""
        with into.open("wb") as file:
            words, env = (*self.words, "-c", _PACK), {**os.environ, **_ENV}
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=file, env=env)
            assert child.stdin is not None  # noqa: S101  it was asked for
            try:
                with child.stdin as pipe:
                    yield pipe
            except BrokenPipeError:
                pass  # it ended too soon; its status says that it failed
            finally:
                status = child.wait()
        if status:
            raise StepFailed(f"packing {into.name} ended with {status}; is the disk full?")


def here() -> Interpreter:
    """Of the machine that builds, whatever it builds for."""
    machine = recipe.MACHINES.get(os.uname().machine)
    if machine is None:
        raise BundleError(f"bundles are built on {' or '.join(recipe.MACHINES)}; this machine is {os.uname().machine}")
    runtime = debian.runtime(machine)
    loader = runtime / "lib" / machine.loader
    return Interpreter((str(loader), "--library-path", str(runtime / "lib"), str(runtime / "bin/python3"), "-s", "-P"))
