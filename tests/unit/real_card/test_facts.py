"""Facts that a driver returned to the conformance program are printed, or compared with a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_card import result
from real_card.facts import main
from real_card.result import Answer, Result, Run

FACTS = {"memory.free.twice": "B", "memory.free.null": "A", "memory.free.outcome": "done"}
RUN = Run(began="2026-11-28", simulated=True, commit="", machine={}, before={})


@pytest.fixture
def answers(tmp_path: Path) -> str:
    told = Answer(row="conformance-memory", run="a", state="answered", facts=FACTS)
    other = Answer(row="fill", run="a", state="answered", facts={"taken": 1})
    result.write(tmp_path / "answers.json", Result(runs={"a": RUN}, answers=(told, other)))
    return str(tmp_path / "answers.json")


def test_facts_are_printed_sorted(answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([answers]) == 0
    assert capsys.readouterr().out == "".join(f"{fact} = {FACTS[fact]}\n" for fact in sorted(FACTS))


@pytest.mark.parametrize(("recorded", "differ"), [("A", 0), ("C", 1)])
def test_an_unlisted_difference_ends_with_3_and_is_named(
    answers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], recorded: str, differ: int
) -> None:
    record = tmp_path / "record.txt"
    record.write_text(f"memory.free.null = {recorded}\n")
    assert main([answers, "--against", str(record)]) == 3 * differ
    said = capsys.readouterr()
    assert said.out == "differs memory.free.null: told A, recorded C\n" * differ
    assert said.err == f"1 facts compared: {differ} differ, 0 are listed, 0 stale\n"


@pytest.mark.parametrize("content", [b"{}x", b"\xff\xfe\x00", None])
def test_what_cannot_be_read_is_one_line(
    answers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    other = tmp_path / "other"
    if content is not None:
        other.write_bytes(content)
    for words in ([str(other)], [answers, "--against", str(other)]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "other" in said
        assert said.count("\n") == 1
