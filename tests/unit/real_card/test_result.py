"""Answers of several runs and cards are merged without loss, and their file is complete at all times."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_card import result
from real_card.result import NO_TIME, Answer, Result, Run, merged, settled

NAMES = tuple("abcd")
STATES: st.SearchStrategy[result.State] = st.sampled_from(["answered", "absent", "failed", "hung", NO_TIME])


def run(name: str = "a", *, is_over: bool = False, card: str = "H200") -> Run:
    machine = {"card": card, "driver": "580.1"}
    state = {"compute_mode": 0}
    began = f"2026-11-2{NAMES.index(name)}T08:00:00+00:00"
    after = state if is_over else {}
    return Run(began=began, simulated=False, commit="", machine=machine, before=state, after=after)


def answer(row: str, of: str = "a", state: result.State = "answered", found: str = "") -> Answer:
    return Answer(row=row, run=of, state=state, found=found)


@st.composite
def results(draw: st.DrawFn) -> Result:
    """Files of the same four runs, on two cards, at different stages."""
    runs = {
        name: run(name, is_over=draw(st.booleans()), card="H200" if name < "c" else "L4")
        for name in draw(st.sets(st.sampled_from(NAMES)))
    }
    rows = [(row, name) for row in ("fill", "death") for name in runs]
    kept = [pair for pair in rows if draw(st.booleans())]
    return Result(runs=runs, answers=tuple(answer(row, name, draw(STATES)) for row, name in kept))


@given(one=results(), two=results(), three=results())
def test_in_whatever_order_files_are_merged_the_answers_are_the_same(one: Result, two: Result, three: Result) -> None:
    assert merged((merged((one, two)), three)) == merged((one, merged((two, three)))) == merged((three, two, one))
    assert merged((one, one)) == merged((one,))


@given(files=st.lists(results(), max_size=4))
def test_for_each_row_and_card_the_newest_answer_stands_with_its_run(files: list[Result]) -> None:
    together = merged(files)
    given_answers = [(each, file.runs[each.run]) for file in files for each in file.answers]
    for kept in together.answers:
        place = together.runs[kept.run].place
        rivals = [each for each, of in given_answers if each.row == kept.row and of.place == place]
        asked = [each for each in rivals if each.state != NO_TIME]
        assert kept in rivals
        assert kept.run == max(each.run for each in asked or rivals)
    assert {(each.row, together.runs[each.run].place) for each in together.answers} == {
        (each.row, of.place) for each, of in given_answers
    }


def test_a_row_without_time_never_replaces_an_answer() -> None:
    older = Result(runs={"a": run()}, answers=(answer("fill"),))
    newer = Result(runs={"b": run("b")}, answers=(answer("fill", "b", NO_TIME),))
    assert merged((older, newer)).answers == older.answers


def test_a_row_is_settled_where_it_was_answered_or_cannot_be() -> None:
    states: list[result.State] = ["answered", "absent", "failed", "hung", "no time"]
    found = Result(runs={"a": run()}, answers=tuple(answer(state, state=state) for state in states))
    assert settled(found, simulated=False) == {"answered", "absent"}
    assert settled(found, simulated=True) == set()


def test_a_card_that_was_not_looked_at_in_the_end_was_not_left_as_found() -> None:
    changed = msgspec.structs.replace(run(), after={"compute_mode": 1})
    assert [each.left_as_found for each in (run(), changed, run(is_over=True))] == [False, False, True]


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path, found = tmp_path / "new/result.json", Result(runs={"a": run()}, answers=(answer("fill"),))
    result.write(path, found)
    assert result.read(path) == found


def test_an_answer_of_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"v": 2, "answers": [{"row": "fill", "run": "a", "state": "answered"}]}')
    with pytest.raises(msgspec.ValidationError, match="no run a"):
        result.read(path)


@pytest.mark.parametrize("step", ["open", "write", "rename"])
def test_a_write_that_is_cut_off_at_any_step_leaves_the_former_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path, former = tmp_path / "result.json", Result(runs={"a": run()})
    result.write(path, former)

    def cut_off(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "cut off")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, cut_off)
        with pytest.raises(OSError, match="cut off"):
            result.write(path, Result(runs={"a": run()}, answers=(answer("fill"),)))
    assert result.read(path) == former
