"""Tables and ages for people."""

from __future__ import annotations

import pytest

from partage_cli.tables import age, pod_name, table


def test_the_namespace_that_pods_have_unsaid_is_left_unsaid() -> None:
    assert [pod_name("default", "train"), pod_name("team-a", "train"), pod_name("a\n", "b")] == [
        "train",
        "team-a/train",
        "a?/b",
    ]


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() -> None:
    assert table(["A", "LONG"], [["wide cell", "x"], ["", ""]]) == "A           LONG\nwide cell   x\n\n"


def test_a_table_without_rows_is_its_header() -> None:
    assert table(["A", "B"], []) == "A   B\n"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "unknown"), (-5, "0s"), (0.9, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (200000, "2d")],
)
def test_ages_are_whole_numbers_of_the_largest_unit(seconds: float | None, words: str) -> None:
    assert age(seconds) == words
