"""The simulation is a separate distribution: it contains its sources, and builds them into a user's cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Final

import pytest

from partage_cli.machine.places import DRIVER, SIMGPUD
from partage_cli.machine.setup.decision import MOST_SIMULATED
from partage_simgpu import driver_root
from partage_simgpu.build import sources
from partage_simgpu.description import MOST_CARDS

pytestmark = pytest.mark.slow

CHECKOUT: Final = Path(__file__).parents[3]
INSTALLED: Final = "partage_simgpu/native"
WHEEL: Final = """
import sys
from hatchling.builders.wheel import WheelBuilder
print(*WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=["standard"]))
"""
OF_ROOT: Final = pytest.mark.skipif(os.geteuid() != 0, reason="`partage up` is root's")
WITHOUT: Final = """
import sys
sys.path[:] = [folder for folder in sys.path if not folder.endswith("/simgpu")]
from partage_cli.main import main
main()
"""
"""The command line without that distribution."""
USE: Final = """
from partage_simgpu.build import built, sources
from partage_simgpu.profiles import profile_names
print(sources())
print(built())
print(*profile_names())
"""


def unpacked(project: Path, folder: Path) -> set[str]:
    """Unpack the project's wheel below the folder, as if installed; return its paths."""
    argv = [sys.executable, "-c", WHEEL, str(project), str(folder)]
    wheel = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
        return set(archive.namelist())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both distributions, side by side."""
    folder = tmp_path_factory.mktemp("wheel")
    assert [path for path in unpacked(CHECKOUT, folder) if "simgpu/" in path or "partage_simgpu" in path] == []
    unpacked(CHECKOUT / "simgpu", folder)
    return folder / "site"


def test_both_distributions_have_one_version_and_name_each_other_by_it() -> None:
    ours, simulated = (
        tomllib.loads((CHECKOUT / path).read_text())["project"] for path in ("pyproject.toml", "simgpu/pyproject.toml")
    )
    version = ours["version"]
    assert simulated["version"] == version
    assert f"partage=={version}" in simulated["dependencies"]
    assert ours["optional-dependencies"]["simulated"] == [f"partage-simgpu=={version}"]


@pytest.mark.parametrize(
    "command", [("simgpu", "ls"), pytest.param(("up", "--simulated", "h100"), marks=OF_ROOT), ("up", "--help")]
)
def test_without_it_commands_say_so_in_a_line(command: tuple[str, ...], tmp_path: Path) -> None:
    argv = [sys.executable, "-P", "-c", WITHOUT, "--root", str(tmp_path), *command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "--help" in command:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        rf"partage: partage {command[0]} simulates cards, .*: pip install '.*' \[PTG\d+\]\n", done.stderr
    )
    assert list(tmp_path.rglob("*.toml")) == []


def test_machines_and_the_simulation_agree_about_its_daemon_and_its_cards() -> None:
    assert f"{DRIVER}/{driver_root.SIMGPUD}" == SIMGPUD
    assert MOST_SIMULATED == MOST_CARDS


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
