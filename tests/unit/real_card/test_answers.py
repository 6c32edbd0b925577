"""Any outcome of a row's program is recorded as an answer of that row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from real_card import process, runner
from real_card.__main__ import main
from real_card.ground import SIMULATED
from real_card.plan import Step
from real_card.process import Done
from real_card.result import Answer
from real_card.row import Facts, Judgement, Row
from real_card.runner import facts_in, judged


def judge(facts: Facts) -> Judgement:
    return Judgement(facts["size"] <= 2, f"size {facts['size']}")


def row(*, only_card: bool = False) -> Row:
    return Row("size", "How large?", "at most 2", ("memory", "size"), judge, only_card=only_card)


def done(said: str, status: int | None = 0, complained: str = "") -> Done:
    return Done(status, 1.0, said, complained)


def answered(ended: Done, *, only_card: bool = False) -> Answer:
    return judged(row(only_card=only_card), ended, facts_in(ended.said) if ended.status == 0 else None)


@pytest.fixture(autouse=True)
def _a_real_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SIMULATED, raising=False)


@pytest.mark.parametrize(("size", "agrees"), [(1, True), (3, False)])
def test_the_last_line_is_judged(size: int, agrees: bool) -> None:  # noqa: FBT001  what is expected
    answer = answered(done(f"a warning\n{json.dumps({'size': size})}\n"))
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
    answer = answered(ended)
    assert (answer.state, answer.agrees) == (state, None)
    assert answer.found


@pytest.mark.parametrize(("size", "kept"), [(3, True), (1, False)])
def test_what_a_row_that_differs_said_is_kept_beside_the_answers(
    size: int,
    kept: bool,  # noqa: FBT001  what is expected
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(*_: object, **__: object) -> Done:
        return done(json.dumps({"size": size}), complained="why so large?")

    monkeypatch.setattr(runner, "driver_file", lambda _: tmp_path)
    monkeypatch.setattr(process, "run", run)
    log = tmp_path / "result.log"
    (answer,) = runner.Runner(tmp_path, "/", log).answers(Step(row(), 15.0))
    assert answer.agrees is not kept
    assert log.exists() is kept
    if kept:
        assert log.read_text() == '== size: ended with 0\n{"size": 3}\nwhy so large?\n'


def test_a_simulated_card_does_not_answer_what_only_a_card_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIMULATED, "h100")
    answers = [answered(done('{"size": 3}'), only_card=only) for only in (True, False)]
    assert [(each.agrees, each.only_card) for each in answers] == [(None, True), (False, False)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--minutes", "0"], "invalid minutes value: '0'"),
        (["--minutes", "soon"], "invalid minutes value: 'soon'"),
        (["--row", "no-such-row"], "there is no row 'no-such-row'; --list names them"),
        (["--missing", "/no/such/file"], "/no/such/file: no answers of a card"),
        (["--no-such-word"], "unrecognized arguments"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_asked(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_answer_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.json"
    path.write_text("{}x")
    assert main(["--out", str(path)]) == 2
    assert "name another file" in capsys.readouterr().err
    assert path.read_text() == "{}x"
