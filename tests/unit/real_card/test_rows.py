"""What is asked of a card is asked once, by a program that there is, and its expectation is in words."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from real_card.ground import ROOT
from real_card.row import Row, Runs, named
from real_card.rows import EVERY, ROWS

NAMES = [row.name for row in EVERY]
FOLDER = ROOT / "tests/real_card"


def questions_of(path: Path) -> set[str]:
    """The words under which a program answers: keys of dictionaries in it."""
    dictionaries = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict)]
    keys = [key for each in dictionaries for key in each.keys if isinstance(key, ast.Constant)]
    return {str(key.value) for key in keys}


def test_each_has_a_name_of_its_own() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_each_stands_in_its_part() -> None:
    assert [row.name for part, rows in ROWS.items() for row in rows if row.part is not part] == []


@pytest.mark.parametrize("row", EVERY, ids=NAMES)
def test_its_program_knows_the_question(row: Row) -> None:
    module, question, *_ = row.program
    folder = "stages" if row.runs is Runs.STAGE else "programs"
    assert question in questions_of(FOLDER / folder / f"{module}.py")


def test_rows_are_found_by_name_in_their_own_order() -> None:
    assert [row.name for row in named(EVERY, ["death", "own-pid"])] == ["own-pid", "death"]
    with pytest.raises(KeyError, match="no-such-row"):
        named(EVERY, ["death", "no-such-row"])
