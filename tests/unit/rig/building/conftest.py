"""The builder with everything real but the programs that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.programs import toolchain
from rig.programs.cache import Cache
from support.fake_programs import APT, DPKG_DEB, GO, VERSION, Fake, Start, put


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """An empty cache, a go and an apt-get; no Go of the machine is seen."""
    folder = tmp_path / "fake"
    put(folder / "bin/go", GO)
    put(folder / "bin/apt-get", APT)
    put(folder / "bin/dpkg-deb", DPKG_DEB)
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PARTAGE_RIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "_USUAL", ())
    fake = Fake(folder, Cache(tmp_path / "cache"))
    fake.tell("says", f"etcd Version: {VERSION}\n")
    fake.tell("goversion", "go1.26.8\n")
    fake.tell("changed", "{}")
    return fake


@pytest.fixture
def start(fake: Fake) -> Iterator[Start]:
    """Starts the builder as people do; nothing of it outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def starting(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "rig.programs", *arguments]
        tests = str(Path(__file__).parents[3])
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": tests},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield starting
    for process in started:
        process.kill()
        process.communicate()
