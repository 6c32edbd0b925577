"""Whatever a row's program does is an answer of that row."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from real_card import result
from real_card.ground import SIMULATED, NoGround
from real_card.process import Done
from real_card.result import Answer, Result
from real_card.row import Facts, Judgement, Part, Row
from real_card.runner import earlier_answers, judged


def judge(facts: Facts) -> Judgement:
    return Judgement(facts["size"] <= 2, f"size {facts['size']}")


def row(*, only_card: bool = False) -> Row:
    return Row("size", Part.BARE, "How large?", "at most 2", ("memory", "size"), judge, only_card=only_card)


def done(said: str, status: int | None = 0, complained: str = "") -> Done:
    return Done(status, 1.0, said, complained)


RESULT = Result(simulated=False, commit="", machine={}, before={"compute_mode": 0})


@pytest.fixture(autouse=True)
def _a_real_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SIMULATED, raising=False)


@pytest.mark.parametrize(("size", "agrees"), [(1, True), (3, False)])
def test_the_last_line_is_judged(size: int, agrees: bool) -> None:  # noqa: FBT001  what is expected
    answer = judged(row(), done(f"a warning\n{json.dumps({'size': size})}\n"))
    assert (answer.state, answer.agrees, answer.found) == ("answered", agrees, f"size {size}")


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (done("", -11, "Segmentation fault"), "failed"),
        (done("", None), "hung"),
        (done('{"absent": "torch is not installed"}'), "absent"),
        (done("hello"), "failed"),
        (done("[1]"), "failed"),
        (done(""), "failed"),
        (done('{"another": 1}'), "failed"),
        (done('{"size": "large"}'), "failed"),
    ],
)
def test_what_is_no_answer_is_said_and_never_judged(ended: Done, state: str) -> None:
    answer = judged(row(), ended)
    assert (answer.state, answer.agrees) == (state, None)
    assert answer.found


def test_a_simulated_card_does_not_answer_what_only_a_card_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIMULATED, "h100")
    answers = [judged(row(only_card=only), done('{"size": 3}')) for only in (True, False)]
    assert [(each.agrees, each.only_card) for each in answers] == [(None, True), (False, False)]


def test_a_row_that_is_asked_again_has_one_answer() -> None:
    first, other, again = (Answer(row=name, part="bare", state="answered") for name in ("size", "death", "size"))
    found = RESULT
    for answer in (first, other, msgspec.structs.replace(again, found="newer")):
        found = result.with_answer(found, answer)
    assert [(each.row, each.found) for each in found.answers] == [("death", ""), ("size", "newer")]


def test_a_card_that_was_not_looked_at_in_the_end_was_not_left_as_found() -> None:
    changed = [RESULT, *(msgspec.structs.replace(RESULT, after={"compute_mode": mode}) for mode in (1, 0))]
    assert [each.left_as_found for each in changed] == [False, False, True]


def test_a_file_that_is_no_answer_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    assert earlier_answers(path) is None
    path.write_text("{}")
    with pytest.raises(NoGround, match="name another file"):
        earlier_answers(path)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new/result.json"
    found = result.with_answer(RESULT, judged(row(), done('{"size": 1}')))
    result.write(path, found)
    assert result.read(path) == found
