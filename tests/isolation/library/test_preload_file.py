"""Through /etc/ld.so.preload every program of a container loads it, with any environment."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from isolation.library.stage import PROGRAMS, VERSION, Stage, compiled
from partage_isolation.library.objects import OBJECTS
from rig.patience import patience_s

pytestmark = [
    pytest.mark.slow,  # compiles
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux"),
]

LIBRARY: Final = "/run/partage/lib/libcuda.so.1"
NOBODY: Final = 65534
_MOUNTS: Final = """
set -e
mount -t tmpfs none /run
mkdir /run/partage /run/programs
mount --bind "$1" /run/partage
mount --bind "$2" /run/programs
mount --bind "$3" /etc
shift 3
exec "$@"
"""
_READ_ONLY: Final = """
for place in /run/partage /run/programs /etc /run /; do mount -o remount,bind,ro $place; done
! (: > /run/file) 2>&- || exit 99
exec "$@"
"""


class Container:
    """A mount namespace with the three mounts that a container has."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.programs = folder / "programs"
        self._place = stage.place
        self._etc = folder / "etc"
        self._etc.mkdir()
        shutil.copy("/etc/passwd", self._etc / "passwd")
        (self._etc / "ld.so.preload").write_text("".join(f"/run/partage/lib/{name}\n" for name in OBJECTS))
        shutil.copytree(stage.programs, self.programs)

    def run(self, *command: str, user: int | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        places = [str(place) for place in (self._place, self.programs, self._etc)]
        inside: Sequence[str] = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNTS, "-", *places]
        if user is not None:
            inside = [*inside, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return subprocess.run(
            [*inside, *command], env=environment, capture_output=True, text=True, timeout=patience_s(), check=False
        )

    def lines(self, *command: str, user: int | None = None, **environment: str) -> list[str]:
        """Output of a program, which must exit with 0 and print nothing on stderr."""
        done = self.run(*command, user=user, **environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout.splitlines()


@pytest.fixture
def container(beside: Stage, tmp_path: Path) -> Container:
    (tmp_path / "container").mkdir()
    return Container(beside, tmp_path / "container")


@pytest.fixture
def without_driver(stage: Stage, tmp_path: Path) -> Container:
    (tmp_path / "container").mkdir()
    return Container(stage, tmp_path / "container")


def test_a_program_without_any_environment_is_captured(container: Container) -> None:
    assert container.lines("/run/programs/opens", "libcuda.so.1") == [f"{VERSION} {LIBRARY}"]
    assert container.lines("/run/programs/opens", "libcuda.so") == [f"{VERSION} {LIBRARY}"]
    assert container.lines("/run/programs/manages") == ["13 123.40 trouble"]


def test_so_is_one_that_another_user_starts(container: Container) -> None:
    assert container.lines("/run/programs/opens", "libcuda.so.1", user=NOBODY) == [f"{VERSION} {LIBRARY}"]


def test_nothing_is_written(container: Container) -> None:
    command = ["sh", "-c", _READ_ONLY, "-"]
    assert container.lines(*command, "/run/programs/opens", "libcuda.so.1") == [f"{VERSION} {LIBRARY}"]
    assert container.lines(*command, "/run/programs/threads", "/run/programs/early.so") == [str(VERSION)]


def test_a_program_with_more_rights_than_its_caller_does_not_listen_to_the_callers_environment(
    without_driver: Container, stage: Stage
) -> None:
    program = without_driver.programs / "raised"
    shutil.copy(without_driver.programs / "opens", program)
    program.chmod(0o4755)
    shutil.copytree(stage.driver, without_driver.programs / "driver")
    (without_driver.programs / "driver").chmod(0o755)
    said = {
        name: without_driver.lines(
            f"/run/programs/{name}", "libcuda.so.1", user=NOBODY, LD_LIBRARY_PATH="/run/programs/driver"
        )
        for name in ("opens", "raised")
    }
    assert said == {"opens": [f"{VERSION} {LIBRARY}"], "raised": [f"-500 {LIBRARY}"]}


def test_a_static_program_has_nothing_of_it(container: Container) -> None:
    compiled("plain.c", container.programs / "plain", "-static")
    assert container.lines("/run/programs/plain") == ["well"]


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="needs musl-gcc of musl-tools")
def test_a_program_of_musl_has_nothing_of_it(container: Container) -> None:
    compiled("plain.c", container.programs / "plain", compiler="musl-gcc")
    assert container.lines("/run/programs/plain") == ["well"]


@pytest.mark.skipif(
    subprocess.run(
        ["cc", "-m32", "-o", "/dev/null", str(PROGRAMS / "plain.c")], capture_output=True, check=False
    ).returncode
    != 0,
    reason="needs a compiler and libc for 32 bits: gcc-multilib",
)
def test_a_program_for_32_bits_runs_and_is_told_on_stderr_alone(container: Container) -> None:
    compiled("plain.c", container.programs / "plain", "-m32")
    done = container.run("/run/programs/plain")
    assert (done.returncode, done.stdout) == (0, "well\n")
    assert all("wrong ELF class" in line for line in done.stderr.splitlines())
