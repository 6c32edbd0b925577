"""The page shows findings beside expectations, and matches the committed one."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from real_card.page import PAGE, committed, main, page
from real_card.result import Answer, Result, Run, write
from real_card.rows import EVERY

FIRST = EVERY[0]


def run_on(card: str) -> Run:
    machine = {"card": card, "driver": "580.1", "cuda": "13.0", "kernel": "6.18"}
    return Run(began="2026-11-28", simulated=False, commit="0" * 40, machine=machine, before={"a": 1}, after={"a": 1})


def with_one(**fields: object) -> str:
    answer = Answer(**{"row": FIRST.name, "run": "a", "state": "answered", **fields})  # type: ignore[arg-type]
    found = Result(runs={"a": run_on("NVIDIA H100")}, answers=(answer,))
    return next(line for line in page(found).splitlines() if line.startswith(f"| `{FIRST.name}`"))


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text() == page(committed()), "run `tools/real page`"


def test_no_simulated_card_is_committed() -> None:
    assert [run.machine for run in committed().runs.values() if run.simulated] == []


def test_without_an_answer_each_row_says_not_yet() -> None:
    rows = [line for line in page(Result()).splitlines() if line.startswith("| `")]
    assert len(rows) == len(EVERY)
    assert [line for line in rows if not line.endswith("| not yet |")] == []


def test_each_card_is_a_column_and_each_answer_says_its_run() -> None:
    runs = {"a": run_on("NVIDIA H200"), "b": run_on("NVIDIA L4")}
    found = [Answer(row=FIRST.name, run=name, state="answered", found=f"by {name}") for name in runs]
    lines = page(Result(runs=runs, answers=tuple(found))).splitlines()
    assert "| question | expected | NVIDIA H200, driver 580.1 | NVIDIA L4, driver 580.1 |" in lines
    assert sum(line.startswith(("| 1, 2026-11-28 | NVIDIA H200", "| 2, 2026-11-28 | NVIDIA L4")) for line in lines) == 2
    assert next(line for line in lines if line.startswith(f"| `{FIRST.name}`")).endswith("| by a (1) | by b (2) |")


def test_answers_of_a_simulated_card_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers.json"
    write(path, Result(runs={"a": replace(run_on("H100"), simulated=True)}))
    assert main([str(path)]) == 2
    assert "simulated" in capsys.readouterr().err


def test_an_answer_is_judged_by_what_is_expected_today_and_keeps_its_verdict_where_that_can_not_be() -> None:
    row = next(row for row in EVERY if row.name == "kernel-cost-free")
    answer = Answer(row=row.name, run="a", state="answered", agrees=False, found="too much")

    def told(facts: dict[str, object]) -> str:
        found = Result(runs={"a": run_on("NVIDIA H200")}, answers=(replace(answer, facts=facts),))
        return next(line for line in page(found).splitlines() if line.startswith(f"| `{row.name}`"))

    assert told({"interposed": True, "driver_ns": 3802.2, "added_ns": 11.2}).endswith(
        "| +11.2 ns on 3802.2, +0.3 % (1) |"
    )
    assert told({"an": "older form"}).endswith("| **differs:** too much (1) |")


def test_what_differs_and_what_failed_is_marked() -> None:
    assert with_one(agrees=True, found="512 MiB").endswith("| 512 MiB (1) |")
    assert with_one(agrees=False, found="9 GiB").endswith("| **differs:** 9 GiB (1) |")
    assert with_one(state="hung", found="not within 30 s").endswith("| **hung:** not within 30 s (1) |")
    assert with_one(state="absent", found="cupy is not installed").endswith("| cupy is not installed (1) |")


def test_a_row_stays_one_line_of_the_table() -> None:
    assert with_one(agrees=True, found="one\ntwo | three").endswith("| one two \\| three (1) |")
