"""Facts against their records: differences, known ones, and files that can't be parsed."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_card.comparison import (
    NOTHING,
    Difference,
    Listed,
    Unreadable,
    compare,
    read_facts,
    read_listed,
)

NAMES: Final = [
    f"{area}.{case}.{fact}" for area in ("a", "b_1") for case in ("c", "d_2") for fact in ("e", "f3", "outcome")
]
VALUE: Final = st.text("abc XYZ_019:=.", max_size=12).map(str.strip)
FACTS: Final = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=8)
TOLD: Final = {"memory.free.null": "A", "memory.free.twice": "B", "memory.free.outcome": "done"}


def text_of(facts: dict[str, str]) -> str:
    return "".join(f"{fact} = {value}\n" for fact, value in facts.items())


def reading(text: str) -> str:
    """The result: parsed, or the error."""
    try:
        read_facts(text, "told")
    except Unreadable as error:
        return str(error)
    return "read"


# ---- comparing


def test_a_fact_that_differs_is_a_difference_and_what_is_not_recorded_is_none() -> None:
    comparison = compare(TOLD, {"memory.free.null": "C"}, [])
    assert comparison.differences == (Difference("memory.free.null", "A", "C", None),)
    assert (comparison.compared, comparison.fine) == (1, False)


def test_a_recorded_fact_that_was_not_told_is_a_difference() -> None:
    comparison = compare(TOLD, {"memory.free.middle": "C"}, [])
    assert comparison.differences == (Difference("memory.free.middle", NOTHING, "C", None),)


def test_a_case_that_was_not_asked_or_that_either_side_skipped_is_left_out() -> None:
    recorded = {"memory.free.null": "C", "memory.pitch.of_1": "512"}
    assert compare(TOLD | {"memory.free.outcome": "skipped: no card"}, recorded, []).compared == 0
    assert compare(TOLD, recorded | {"memory.free.outcome": "skipped: no card"}, []).compared == 0


def test_a_listed_difference_is_fine_and_keeps_its_reason() -> None:
    comparison = compare(TOLD, {"memory.free.null": "C"}, [Listed("memory.free.n*", "because")])
    assert [one.reason for one in comparison.differences] == ["because"]
    assert comparison.fine


@pytest.mark.parametrize("pattern", ["memory.free.null", "memory.free.*", "memory.free.renamed"])
def test_an_entry_that_forgives_nothing_is_stale(pattern: str) -> None:
    comparison = compare(TOLD, {"memory.free.null": "A"}, [Listed(pattern, "because")])
    assert (comparison.stale, comparison.fine) == ((pattern,), False)


@pytest.mark.parametrize("pattern", ["memory.free.twice", "graphs.clone.*"])
def test_an_entry_of_which_the_record_says_nothing_is_not_stale(pattern: str) -> None:
    assert compare(TOLD, {"memory.free.null": "A"}, [Listed(pattern, "because")]).fine


@given(told=FACTS, recorded=FACTS)
def test_with_everything_listed_no_difference_is_unlisted(told: dict[str, str], recorded: dict[str, str]) -> None:
    comparison = compare(told, recorded, [Listed("*", "because")])
    assert all(one.reason == "because" for one in comparison.differences)


# ---- reading


@given(facts=FACTS)
def test_what_was_told_is_read_as_it_was_told(facts: dict[str, str]) -> None:
    assert read_facts("# a comment\n\n" + text_of(facts), "told") == facts


@given(text=st.text(max_size=80))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    assert re.fullmatch(r"read|told:\d+: [^\n]*", reading(text))


@given(facts=FACTS, cut=st.integers(min_value=1, max_value=40))
def test_what_was_cut_short_is_read_or_refused(facts: dict[str, str], cut: int) -> None:
    became = reading(text_of(facts)[:-cut])
    assert became == "read" or became.endswith("expected 'area.case.fact = value'")


def test_a_fact_that_is_told_in_two_ways_is_refused() -> None:
    with pytest.raises(Unreadable, match=r"told:2: memory\.free\.null: told twice, and differently"):
        read_facts("memory.free.null = A\nmemory.free.null = B\n", "told")


@pytest.mark.parametrize(
    "text",
    [
        "difference = 1",
        "[[differences]]\nfacts = ['a']\nreason = 'b'",
        "[[difference]]\nfacts = []\nreason = 'b'",
        "[[difference]]\nfacts = ['a']",
        "[[difference]]\nfacts = ['a']\nreason = ' '",
        "[[difference]]\nfacts = [1]\nreason = 'b'",
        "[[difference]]\nfacts = ['a']\nreason = 'b'\nmore = 1",
        "[[difference",
    ],
)
def test_a_wrong_list_of_differences_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Unreadable, match=r"^differences\.toml: "):
        read_listed(text, "differences.toml")
