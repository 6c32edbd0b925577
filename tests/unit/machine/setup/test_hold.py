"""Only one process at a time sets up a machine or takes it down, by a lock of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partage_cli.machine.setup.errors import Held
from partage_cli.machine.setup.hold import end_holder, held, holder

HOLDING = """
import sys, time
from pathlib import Path
from partage_cli.machine.setup.hold import held
with held(Path(sys.argv[1]), "partage up"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_one_is_refused_with_the_number_of_the_first(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    with other:
        assert holder(tmp_path) == other.pid
        with pytest.raises(Held, match=f"process {other.pid} is at it"), held(tmp_path, "partage up"):
            pass
        other.kill()
    with held(tmp_path, "partage up"):
        assert os.getpid()


def test_a_holder_is_asked_to_end_and_waited_for(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    with other:
        assert end_holder(tmp_path, within_s=20) == other.pid
        assert other.wait(0) is not None
    assert holder(tmp_path) is None
    assert end_holder(tmp_path, within_s=0) is None


def test_where_nothing_ever_was_there_is_no_holder(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    assert not [*tmp_path.iterdir()]
