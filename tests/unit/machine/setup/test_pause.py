"""The sandbox's image: a program that only waits, and an archive of it that is the same each time."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from partage_cli.machine.setup.containerd import PAUSE_IMAGE
from partage_cli.machine.setup.errors import Unfit
from partage_cli.machine.setup.pause import archive, program
from rig.patience import patience_s

MACHINE = os.uname().machine


def test_it_waits_takes_no_time_and_ends_when_told(tmp_path: Path) -> None:
    file = tmp_path / "pause"
    file.write_bytes(program(MACHINE))
    file.chmod(0o755)
    with subprocess.Popen([file]) as running:
        running.send_signal(signal.SIGWINCH)  # which programs ignore that say nothing: it waits on
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.2)
        times = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()
        assert int(times[11]) + int(times[12]) <= 1
        running.terminate()
        assert running.wait(patience_s()) == -signal.SIGTERM


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_archive_is_whole_and_the_same_each_time(machine: str) -> None:
    assert archive(machine) == archive(machine)
    with tarfile.open(fileobj=io.BytesIO(archive(machine))) as tar:
        files = {each.name: _content(tar, each) for each in tar}
    for name, content in files.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    (named,) = json.loads(files["index.json"])["manifests"]
    assert named["annotations"] == {"io.containerd.image.name": PAUSE_IMAGE}
    manifest = json.loads(files[f"blobs/{named['digest'].replace(':', '/')}"])
    assert all(
        f"blobs/{each['digest'].replace(':', '/')}" in files for each in (manifest["config"], *manifest["layers"])
    )


def test_another_processor_is_refused_in_words() -> None:
    with pytest.raises(Unfit, match="this machine is riscv64"):
        archive("riscv64")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()
