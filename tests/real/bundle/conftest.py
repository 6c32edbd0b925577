"""The trees of this checkout, built once for all tests that need them and unpacked into otherwise empty roots."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from partage_bundle import built

HERE = os.uname().machine
ANSWERS_WITHIN_S = 60
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin") or "chroot"


@dataclass(frozen=True)
class Root:
    """A root folder with only the tree and /dev/null: no libc, no shell and no system Python."""

    folder: Path
    version: str

    @property
    def tree(self) -> Path:
        return self.folder / "opt/partage" / self.version

    @property
    def programs(self) -> list[str]:
        return sorted(path.name for path in (self.tree / "bin").iterdir() if path.name != "python3")

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.started(f"/opt/partage/{self.version}/bin/{program}", *arguments)

    def python(self, script: str) -> str:
        """Output of a script that is started as daemons start their children."""
        done = self.run("python3", "-P", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def started(self, *argv: str) -> subprocess.CompletedProcess[str]:
        words = (CHROOT, str(self.folder), *argv)
        return subprocess.run(
            words, capture_output=True, text=True, env={}, cwd="/", timeout=ANSWERS_WITHIN_S, check=False
        )


def unpacked(tree: Path, into: Path) -> Root:
    version = (tree / "VERSION").read_text().strip()
    shutil.copytree(tree, into / "opt/partage" / version)
    (into / "dev").mkdir()
    os.mknod(into / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    return Root(into, version)


@pytest.fixture(scope="session")
def node_tree() -> Path:
    return built("node")


@pytest.fixture(scope="session")
def scheduler_tree() -> Path:
    return built("scheduler")


@pytest.fixture(scope="session")
def node(node_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Root:
    return unpacked(node_tree, tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="session")
def scheduler(scheduler_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Root:
    return unpacked(scheduler_tree, tmp_path_factory.mktemp("scheduler"))
