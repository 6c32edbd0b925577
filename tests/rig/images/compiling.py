"""The few small programs that images need and machines do not have, compiled where the tests run."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from rig.errors import BuildFailed, MachineUnfit

SOURCES: Final = Path(__file__).parent / "c"
_FLAGS: Final = ("-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror")
_PACKAGES: Final = {"cc": "gcc and libc6-dev", "musl-gcc": "musl-tools"}


def compiled(source: Path, *, compiler: str = "cc", flags: tuple[str, ...] = ()) -> bytes:
    """The program that this compiler makes of one C file; `cc` links glibc, `musl-gcc` musl."""
    if shutil.which(compiler) is None:
        raise MachineUnfit(f"{compiler} is missing; install {_PACKAGES.get(compiler, 'it')}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / source.stem
        command = [compiler, *_FLAGS, *flags, "-o", str(program), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildFailed(f"{compiler} cannot compile {source}:\n{done.stderr}")
        return program.read_bytes()
