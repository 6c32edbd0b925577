"""NVIDIA's packages that tests run or compare with: fetched once, from the package index or Debian, never installed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from rig.errors import MachineUnfit
from rig.programs import ensure

_KEPT = Path(__file__).parents[2] / ".cache/nvidia"


class Package(NamedTuple):
    name: str
    version: str
    sha256: str


NVML_HEADER = Package("nvidia-nvml-dev", "13.5.37", "7394fcbefa9ba537e8238cbb1caa4cd2db6bbfbff208d217a8a884947113ae6d")
CUDA_RUNTIME = Package(
    "nvidia-cuda-runtime", "13.5.37", "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d"
)


def unpacked(package: Package) -> Path:
    folder = _KEPT / f"{package.name}-{package.version}"
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(package, folder)
    return folder


def driver_root(branch: str) -> Path:
    """A root with the libraries of a branch of the driver; skips the test where they can't be had."""
    component = f"driver-{branch}"
    try:
        libcuda = ensure(component)[f"libcuda.so.1@{component}"]
    except MachineUnfit as unfit:
        pytest.skip(str(unfit))
    return libcuda.parents[3]


def nvml_header() -> Path:
    return next(unpacked(NVML_HEADER).rglob("nvml.h"))


def _fetch(package: Package, folder: Path) -> None:
    wanted = _KEPT / f"{folder.name}.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", str(_KEPT), "-r", str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    wheel = next(_KEPT.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl"))
    fresh = folder.with_suffix(".new")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(fresh)
    fresh.rename(folder)
    wheel.unlink()
    wanted.unlink()
