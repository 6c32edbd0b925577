"""What users install has the sources of the simulation, finds them, and builds them into the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from partage_simgpu.build import sources

pytestmark = pytest.mark.slow

CHECKOUT: Final = Path(__file__).parents[3]
INSTALLED: Final = "partage_simgpu/native"
WHEEL: Final = """
import sys
from hatchling.builders.wheel import WheelBuilder
print(*WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=["standard"]))
"""
USE: Final = """
from partage_simgpu.build import built, sources
from partage_simgpu.profiles import profile_names
print(sources())
print(built())
print(*profile_names())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel's content would lie when it is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-c", WHEEL, str(CHECKOUT), str(folder)]
    wheel = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_has_every_file_that_a_build_needs(site: Path) -> None:
    there = {str(path.relative_to(site / INSTALLED)) for path in (site / INSTALLED).rglob("*") if path.is_file()}
    needed = {
        str(path.relative_to(sources()))
        for path in sources().rglob("*")
        if path.suffix in {".c", ".h", ".def", ".map", ".toml"} or path.name == "Makefile"
    }
    assert needed <= there


@pytest.mark.extended("compiles the simulated driver once more")
def test_what_is_installed_builds_itself_on_first_use(site: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PARTAGE_", "PYTHON"))}
    env = {**kept, "PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path), "CFLAGS": "-O0"}
    argv = [sys.executable, "-P", "-c", USE]
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, build, names = done.stdout.splitlines()
    assert Path(found) == site / INSTALLED
    assert Path(build).parent == tmp_path / "partage/simgpu"
    assert {"simgpud", "libcuda.so", "libnvidia-ml.so", "flood"} <= {path.name for path in Path(build).iterdir()}
    assert "h200" in names.split()
