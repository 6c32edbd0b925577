"""A real grpc-go client, as kubelet is one, and a real containerd: what it sees of restarts on the way."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.splicing import serve
from bench.splicing.places import serving
from bench.splicing.programs import build
from rig.lone import LoneRuntime, lone_runtime

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
OUTAGE_S = 6.0
"""Long enough for a client that is turned away to wait for more than a second between its tries."""


@pytest.fixture(scope="module")
def runtime() -> Iterator[LoneRuntime]:
    with lone_runtime({}, say=print) as lone:
        yield lone


def argv(runtime: LoneRuntime, socket: Path) -> list[str | Path]:
    return [sys.executable, Path(serve.__file__), runtime.machine.path(runtime.socket), socket]


def calling(socket: Path, *flags: str) -> subprocess.Popen[str]:
    program = build() / "client"
    return subprocess.Popen(
        [program, f"-target=crishim={socket}", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_no_call_fails_while_the_process_is_replaced_again_and_again(runtime: LoneRuntime, tmp_path: Path) -> None:
    socket = tmp_path / "crishim.sock"
    with ExitStack() as stack:
        present = stack.enter_context(serving(argv(runtime, socket), socket))
        client = calling(socket, "-in-flight=16", "-rounds=1", "-seconds=6", "-method=mixed")
        counted = 0
        for _ in range(3):
            time.sleep(1)
            before = socket.stat().st_ino
            following = stack.enter_context(serving(argv(runtime, socket), socket))
            while socket.stat().st_ino == before:
                time.sleep(0.01)
            counted += present.end()["calls"]
            present = following
        said, complaints = client.communicate(timeout=60)
        assert (client.returncode, complaints) == (0, "")
        assert counted > 0, said
        assert present.end()["calls"] > 0


def test_all_is_well_within_a_second_of_containerds_return(runtime: LoneRuntime, tmp_path: Path) -> None:
    socket = tmp_path / "crishim.sock"
    with serving(argv(runtime, socket), socket):
        client = calling(socket, "-persist", "-seconds=12")
        time.sleep(1)
        runtime.containerd.kill()
        time.sleep(OUTAGE_S)
        runtime.containerd.start()
        runtime.containerd.wait_ready()
        back_ms = time.time() * 1000
        said, complaints = client.communicate(timeout=60)
    assert complaints == ""
    changes = [(int(at), code) for at, code in (line.split() for line in said.splitlines())]
    assert [code for _, code in changes] == ["ok", "Unavailable", "ok"], said
    assert changes[-1][0] - back_ms < 1000, said
