"""A slot has one owner; its next owner cleans up after one that died."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.errors import MachineUnfit
from rig.machine.addresses import SLOTS
from rig.machine.slots import Slot, claimed, owners, sweep
from rig.patience import patience_s

TESTS = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from rig.machine.slots import claimed
with claimed(lambda slot: None, Path(sys.argv[1])) as slot:
    (slot.folder / "remains").write_text("of the dead")
    print(slot.number, flush=True)
    sys.stdin.read()
"""
TAKE_TURNS = """
import sys
from pathlib import Path
from rig.machine.slots import claimed
for _ in range(40):
    with claimed(lambda slot: None, Path(sys.argv[1])) as slot:
        (slot.folder / "mine").open("x").close()
"""


def nothing(_: Slot) -> None:
    """Cleans nothing, for tests without anything to clean."""


def start(program: str, base: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(TESTS)},
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "rigs"


@pytest.fixture
def another_owner(base: Path) -> Iterator[subprocess.Popen[str]]:
    with start(HOLD, base) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        yield process
        process.kill()


def test_a_slot_is_empty_at_first_and_nothing_is_left_at_the_end(base: Path) -> None:
    with claimed(nothing, base) as slot:
        assert list(slot.folder.iterdir()) == []
        (slot.folder / "a").mkdir()
        assert owners(base) == {0: slot.folder}
    assert not base.exists()


def test_what_a_living_owner_has_is_left_alone(base: Path, another_owner: subprocess.Popen[str]) -> None:
    assert sweep(nothing, base) == []
    with claimed(nothing, base) as slot:
        assert slot.number == 1
    assert (base / "0" / "remains").exists()


def test_what_a_killed_owner_left_is_cleaned_before_its_slot_is_used(
    base: Path, another_owner: subprocess.Popen[str]
) -> None:
    another_owner.kill()
    another_owner.wait()
    cleaned: list[bool] = []
    with claimed(lambda slot: cleaned.append((slot.folder / "remains").exists()), base) as slot:
        assert slot.number == 0
        assert cleaned[0]
        assert list(slot.folder.iterdir()) == []


def test_what_cannot_be_cleaned_stays_known(base: Path, another_owner: subprocess.Popen[str]) -> None:
    another_owner.kill()
    another_owner.wait()

    def stuck(_: Slot) -> None:
        raise MachineUnfit("a device is busy")

    with pytest.raises(MachineUnfit, match="a device is busy"):
        sweep(stuck, base)
    assert sweep(nothing, base) == [0]
    assert not base.exists()


def test_a_machine_that_is_full_says_so(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.machine.slots.SLOTS", SLOTS[:1])
    full = pytest.raises(MachineUnfit, match="rig-down")
    with claimed(nothing, base), full, claimed(nothing, base):
        pass


@pytest.mark.slow
def test_many_who_start_and_end_at_once_never_share_one(base: Path) -> None:
    processes = [start(TAKE_TURNS, base) for _ in range(6)]
    for process in processes:
        process.communicate(timeout=patience_s())
    assert [process.returncode for process in processes] == [0] * 6
    assert not base.exists()
