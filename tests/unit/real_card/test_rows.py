"""Each question to a card is asked once, by an existing program, and has a written expectation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from real_card.ground import ROOT
from real_card.row import Row, Runs
from real_card.rows import EVERY, conformance, container, driver, time

NAMES = [row.name for row in EVERY]
FOLDER = ROOT / "tests/real_card"
CASE = re.compile(r"^CASE\((\w+), \w+\)", re.MULTILINE)


def questions_of(path: Path) -> set[str]:
    """The names of a program's answers: the keys of its dictionaries."""
    dictionaries = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict)]
    keys = [key for each in dictionaries for key in each.keys if isinstance(key, ast.Constant)]
    return {str(key.value) for key in keys}


def test_each_stands_once_in_the_order_of_worth() -> None:
    rows = [row.name for module in (conformance, container, driver, time) for row in module.ROWS]
    assert sorted(NAMES) == sorted(rows)
    assert len(set(NAMES)) == len(NAMES)


def test_each_area_of_the_conformance_program_is_a_row() -> None:
    areas = {area for path in conformance.SOURCES.glob("*.c") for area in CASE.findall(path.read_text())}
    assert areas == set(conformance.AREAS)


def test_what_decides_most_is_expected_within_the_first_four_minutes() -> None:
    first = EVERY[: NAMES.index("memory-back") + 1]
    assert sum(row.cost_s for row in first) <= 240
    assert {"torch", "inference", "nvidia-smi", "death"} <= {row.name for row in first}


@pytest.mark.parametrize(
    ("name", "driver_ns", "added_ns", "agrees"),
    [
        ("kernel-cost-free", 100.0, 10.0, True),
        ("kernel-cost-free", 100.0, 10.1, False),
        ("kernel-cost-leased", 4000.0, 120.0, True),
        ("kernel-cost-leased", 4000.0, 120.1, False),
        ("graph-cost-free", 2000.0, 100.0, True),
        ("graph-cost-leased", 900.0, 50.0, True),
        ("graph-cost-leased", 900.0, 50.1, False),
    ],
)
def test_a_launch_may_cost_some_ns_more_or_a_small_part(
    name: str,
    driver_ns: float,
    added_ns: float,
    agrees: bool,  # noqa: FBT001  what is expected
) -> None:
    row = next(row for row in EVERY if row.name == name)
    assert row.judge({"interposed": True, "driver_ns": driver_ns, "added_ns": added_ns}).agrees is agrees
    assert not row.judge({"interposed": False, "driver_ns": driver_ns, "added_ns": added_ns}).agrees


@pytest.mark.parametrize("row", [row for row in EVERY if row.runs is not Runs.CONFORMANCE], ids=lambda row: row.name)
def test_its_program_knows_the_question(row: Row) -> None:
    module, question, *_ = row.program
    folder = "stages" if row.runs is Runs.STAGE else "programs"
    assert question in questions_of(FOLDER / folder / f"{module}.py")
