"""NVIDIA's packages that tests run or compare with: fetched once from the package index or Debian, never installed."""

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
    sha256: tuple[str, ...]
    """Digests of all acceptable wheels."""
    for_any: bool = True
    """Whether the wheel is for this machine and Python; else it is for one Python on x86_64, and only text is read."""


NVML_HEADER = Package(
    "nvidia-nvml-dev", "13.5.37", ("7394fcbefa9ba537e8238cbb1caa4cd2db6bbfbff208d217a8a884947113ae6d",)
)
CUDA_RUNTIME = Package(
    "nvidia-cuda-runtime", "13.5.37", ("df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",)
)
CUDA_RUNTIME_12 = Package(
    "nvidia-cuda-runtime-cu12", "12.9.79", ("25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",)
)
CUDA_COMPILER = Package(
    "nvidia-cuda-nvcc-cu12", "12.9.86", ("5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",)
)
CUDA_BINDINGS = Package(
    "cuda-bindings",
    "13.5.0",
    (
        "08b7e8d674c3266facb00453a7e34ea7d3ea965c2f594bb728f269f45f39fbe2",  # Python 3.11
        "a46a8cc84112d769d0f57bf3ae3fedc115cf09348f14da85a1a8200968b6f262",
        "d47b6f6d0398f97c82e2525eefb02e7252848e48c902824f6a6b6467a5902894",
        "99746f2928150042191edf7952323bb22e8f104f7bcee787bd7e2001a8bba70b",  # Python 3.14
    ),
)
CUDA_PATHFINDER = Package(
    "cuda-pathfinder", "1.9.0", ("622df7440f7702f36b7a02a1699aa0b084fe04034d9939188fee9b16d0c36366",)
)
NUMBA = Package("numba", "0.68.1", ("58fe7a3810261cf13797d8aa94c018cfe91e1e8adf634df60eb60ef834f9367b",), for_any=False)
NUMBA_CUDA = Package(
    "numba-cuda", "0.30.4", ("59b0e895a4884a26323b9581ac6966b7b063b6f0ce87ac23d1192c95158f4d1e",), for_any=False
)
_CERTAIN = ("--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux_2_28_x86_64")
_OTHER_CONTENT = "DO NOT MATCH THE HASHES"


def unpacked(package: Package) -> Path:
    """The folder of the package's files; skips the test if it can't be fetched."""
    folder = _KEPT / f"{package.name}-{package.version}"
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(package, folder)
    return folder


def driver_root(branch: str) -> Path:
    """A root with the libraries of a driver branch; skips the test if they can't be fetched."""
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
    digests = (f"--hash=sha256:{digest}" for digest in package.sha256)
    wanted.write_text(f"{package.name}=={package.version} {' '.join(digests)}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", str(_KEPT), "-r", str(wanted)]
    command += () if package.for_any else _CERTAIN
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert _OTHER_CONTENT not in done.stderr, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    if done.returncode != 0:
        pytest.skip(f"{package.name} {package.version} can't be had: {done.stderr.strip().splitlines()[-1:]}")
    wheel = next(_KEPT.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl"))
    fresh = folder.with_suffix(".new")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(fresh)
    fresh.rename(folder)
    wheel.unlink()
    wanted.unlink()
