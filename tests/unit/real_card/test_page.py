"""The page says what was found beside what was expected, and is the one that is committed."""

from __future__ import annotations

from real_card.page import PAGE, committed, page
from real_card.result import Answer, Result
from real_card.rows import EVERY

FIRST = EVERY[0]


def with_one(**fields: object) -> str:
    answer = Answer(**{"row": FIRST.name, "part": FIRST.part.value, "state": "answered", **fields})  # type: ignore[arg-type]
    machine = {"card": "NVIDIA H100", "driver": "580.1", "cuda": "13.0", "kernel": "6.18"}
    found = Result(
        simulated=False, commit="0" * 40, machine=machine, before={"a": 1}, after={"a": 1}, answers=(answer,)
    )
    return next(line for line in page([found]).splitlines() if line.startswith(f"| `{FIRST.name}`"))


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text() == page(committed()), "run `tools/real page`"


def test_no_simulated_card_is_committed() -> None:
    assert [found.machine for found in committed() if found.simulated] == []


def test_without_an_answer_each_row_says_not_yet() -> None:
    rows = [line for line in page([]).splitlines() if line.startswith("| `")]
    assert len(rows) == len(EVERY)
    assert [line for line in rows if not line.endswith("| not yet |")] == []


def test_what_differs_and_what_failed_is_marked() -> None:
    assert with_one(agrees=True, found="512 MiB").endswith("| 512 MiB |")
    assert with_one(agrees=False, found="9 GiB").endswith("| **differs:** 9 GiB |")
    assert with_one(state="hung", found="not within 30 s").endswith("| **hung:** not within 30 s |")
    assert with_one(state="absent", found="cupy is not installed").endswith("| cupy is not installed |")


def test_a_row_stays_one_line_of_the_table() -> None:
    assert with_one(agrees=True, found="one\ntwo | three").endswith("| one two \\| three |")
