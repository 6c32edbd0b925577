"""The environment of the questions: checkout, interpreters, the driver that programs find, and built programs.

Environment variables configure a run, so that each row's process sees the same.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache/real"
CARRIED_COMMIT: Final = ROOT / "commit"
"""The commit of a carried folder."""
PYTHON: Final = "PARTAGE_REAL_PYTHON"
"""The interpreter whose frameworks are tried; by default the first `python3` except for our own."""
PROGRAMS: Final = "PARTAGE_REAL_PROGRAMS"
"""A folder with prebuilt flood and costs, for machines without a compiler."""
DRIVER_ROOT: Final = "PARTAGE_REAL_DRIVER_ROOT"
"""The broker's root of the driver's libraries; the runner creates it."""
DRIVER_PAST: Final = "PARTAGE_REAL_DRIVER_PAST"
"""The driver by a name that the library does not know: opening it bypasses the library. The runner creates it."""
SIMULATED: Final = "PARTAGE_REAL_SIMULATED"
_OUR_OWN: Final = ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "VIRTUAL_ENV")
_LIBRARIES: Final = ("libcuda.so.1", "libnvidia-ml.so.1")
_FOLDER: Final = f"usr/lib/{os.uname().machine}-linux-gnu"
_FIND: Final = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
print(next(l.split(None, 5)[5].strip() for l in open("/proc/self/maps") if sys.argv[1].split(".so")[0] in l))
"""


class NoGround(Exception):
    """Nothing to ask, or no means to ask it; the message says what to do."""


def user_python() -> str:
    """The interpreter of programs that represent users'."""
    if said := os.environ.get(PYTHON):
        return said
    own = ROOT / ".venv/bin"
    folders = [each for each in os.environ.get("PATH", "").split(os.pathsep) if Path(each).absolute() != own]
    return shutil.which("python3", path=os.pathsep.join(folders)) or sys.executable


def program(module: str, *words: str) -> list[str]:
    """The command of one of our programs that represent users'."""
    return [user_python(), "-m", f"real_card.programs.{module}", *words]


def stage(module: str, *words: str) -> list[str]:
    return [sys.executable, "-m", f"real_card.stages.{module}", *words]


def user_environment() -> Mapping[str, str]:
    """Our environment without variables for our own interpreter.

    The user's interpreter finds its frameworks' compiler caches.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OUR_OWN}
    return {**kept, "PYTHONPATH": str(ROOT / "tests"), "PYTHONDONTWRITEBYTECODE": "1"}


def driver_file(name: str) -> Path:
    """The file that the loader finds by the name; raises `NoGround`."""
    argv = [user_python(), "-c", _FIND, name]
    done = subprocess.run(argv, env=user_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoGround(f"there is no {name}: is NVIDIA's driver installed? --simulated h100 asks a simulated card")
    return Path(done.stdout.strip())


def lay_out_driver(folder: Path) -> Path:
    """A driver root for the broker, with the libraries that the loader finds anywhere."""
    target = folder / _FOLDER
    target.mkdir(parents=True)
    for name in _LIBRARIES:
        shutil.copyfile(driver_file(name), target / name)
    return folder


def driver_past() -> Path:
    return Path(os.environ[DRIVER_PAST])


def is_simulated() -> bool:
    return SIMULATED in os.environ


def commit() -> str:
    """The checkout's commit, and whether it was changed since; a carried folder's at its creation; otherwise empty."""
    argv = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError):
        return CARRIED_COMMIT.read_text().strip()
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    return ""


def built_programs() -> Path:
    """The folder of flood and costs: prebuilt, or built now if there is a compiler. Raises `NoGround`."""
    if said := os.environ.get(PROGRAMS):
        return Path(said)
    folder = CACHE / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        argv = ["make", "-s", "-C", str(ROOT / "tests/real_card/native"), f"OUT={folder}"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except OSError as error:
            raise NoGround(f"make cannot be run: {error}; name ready-made programs in {PROGRAMS}") from error
    if done.returncode:
        raise NoGround(f"{argv[3]} does not build: {done.stderr.strip()[-300:]}")
    return folder
