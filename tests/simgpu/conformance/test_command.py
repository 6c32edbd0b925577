"""tools/conformance, as people type it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[3]
EXPECTED: Final = ROOT / "simgpu/native/conformance/expected"


def typed(*words: str, folder: Path = ROOT, **environment: str) -> tuple[int, str, str]:
    """Exit status and what was said to programs and to people."""
    done = subprocess.run(
        [ROOT / "tools/conformance", *words],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_simulated_card_is_asked_and_its_facts_are_printed_sorted() -> None:
    status, told, said = typed("--simulated", "l4", "memory.free", "init")
    assert (status, said) == (0, "")
    assert told.splitlines() == sorted(told.splitlines())
    assert "memory.free.twice = CUDA_ERROR_INVALID_VALUE" in told.splitlines()


def test_a_simulated_card_agrees_with_the_records_and_only_they_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "documented.txt").symlink_to(EXPECTED / "documented.txt")
    status, told, said = typed(
        "--simulated", "l4", "--against", "documented.txt", "memory.free", "functions.of_modules", folder=tmp_path
    )
    assert status == 0
    assert [line.split()[0] for line in told.splitlines()] == ["listed", "listed"]
    assert "0 differ, 2 are listed, 0 stale" in said


def test_an_unlisted_difference_ends_with_3(tmp_path: Path) -> None:
    record = tmp_path / "card.txt"
    record.write_text("memory.free.twice = CUDA_SUCCESS\n")
    status, told, _ = typed("--simulated", "l4", "--against", str(record), "memory.free")
    assert (status, told) == (
        3,
        "differs memory.free.twice: told CUDA_ERROR_INVALID_VALUE, recorded CUDA_SUCCESS\n",
    )


@pytest.mark.parametrize("words", [("--simulated",), ("--against",), ("--wrong",)])
def test_a_wrong_word_is_refused_with_the_usage(words: tuple[str, ...]) -> None:
    status, told, said = typed(*words)
    assert (status, told) == (2, "")
    assert "usage: tools/conformance" in said


def test_a_card_that_there_is_not_is_refused_in_the_words_of_partage() -> None:
    status, told, said = typed("--simulated", "h999", "init")
    assert (status, told) == (1, "")
    assert "h999" in said
