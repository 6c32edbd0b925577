"""The fuzz runner as people use it: a program's exit status and output files."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig.patience import patience_s

pytestmark = pytest.mark.slow  # each test starts processes

ROOT = Path(__file__).resolve().parents[3]
RUNNER = ROOT / "tests" / "fuzz" / "runner.py"

PLANTED = '''"""Every text is as good as any other."""

SEEDS = (b"Xylophone", b'{"a": 12}')


def target(data):
    if data[:1] == b"X":
        if data[1:2] == b"Y":
            raise ValueError(f"found {data!r}")
'''

FINE = '''"""JSON parses or is refused."""

import json

SEEDS = (b'{"a": 12}',)


def target(data):
    try:
        json.loads(data)
    except (ValueError, RecursionError) as error:
        return error
'''


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


def fuzz(folder: Path, *arguments: str) -> Ran:
    command = [sys.executable, "-P", str(RUNNER), *arguments, "--folder", str(folder), "--keep", str(folder / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience_s())
    return Ran(done.returncode, done.stdout, done.stderr)


def target(folder: Path, body: str) -> None:
    lines = body.replace("\n", "\n    ")
    (folder / "toy.py").write_text(f'"""No input is bad."""\nSEEDS = (b"hello",)\ndef target(data):\n    {lines}\n')


def test_a_planted_bug_is_found_made_short_and_kept(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(PLANTED)
    ran = fuzz(tmp_path, "toy", "--seconds", "30", "--seed", "1")
    assert ran.status == 3, ran
    (kept,) = (tmp_path / "kept" / "toy").glob("crash-*")
    assert kept.read_bytes() == b"XY"
    assert "BROKEN: ValueError: found b'XY'" in ran.out
    assert "invariant: Every text is as good as any other." in ran.out
    assert "found with: --seed 1\n" in ran.out
    assert f"--replay {kept}\n" in ran.out


def test_a_sound_target_exits_0_and_says_what_was_done(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(FINE)
    ran = fuzz(tmp_path, "toy", "--seconds", "0.3", "--seed", "1")
    assert ran.status == 0, ran
    for word in ("fuzz toy: ", "executions", "/s,", "outcomes", "inputs kept", "lines reached", "seed 1"):
        assert word in ran.out
    assert not (tmp_path / "kept").exists()


BLOCKED = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("try:\n    while data == b'hello': pass\nexcept Exception: pass", "BROKEN: does not end;"),
        ("import os\nif data == b'hello': os.abort()", "ended by SIGABRT"),
        (BLOCKED + "while data == b'hello': time.sleep(1)", "ended by SIGKILL"),
    ],
    ids=["hangs", "kills the process", "hangs where no alarm arrives"],
)
def test_an_input_that_no_exception_tells_of_is_found_all_the_same(tmp_path: Path, body: str, says: str) -> None:
    target(tmp_path, body)
    ran = fuzz(tmp_path, "toy", "--input-seconds", "0.9")
    assert ran.status == 3, ran
    assert says in ran.out
    assert "b'hello'" in ran.out


def test_all_runs_each_and_answers_for_the_worst(tmp_path: Path) -> None:
    target(tmp_path, "raise KeyError")
    (tmp_path / "sound.py").write_text(FINE)
    ran = fuzz(tmp_path, "all", "--seconds", "0.1")
    assert ran.status == 3
    assert "fuzz sound: 0.1 s" in ran.out
    assert "fuzz toy: BROKEN: KeyError" in ran.out


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "no fuzz target named toy; there is: sound"),
        ('"""Doc."""\nSEEDS = (b"",)\n', "fuzz target toy has no target"),
        ("def target(data): ...\n", "fuzz target toy has no __doc__, SEEDS"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, text: str | None, complaint: str) -> None:
    (tmp_path / "sound.py").write_text(FINE)
    if text is not None:
        (tmp_path / "toy.py").write_text(text)
    assert fuzz(tmp_path, "toy") == Ran(2, "", complaint + "\n")
