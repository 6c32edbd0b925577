"""The conformance program on simulated cards: every case ends, is repeatable, and matches its record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from real_card.comparison import compare, lines_of, read_facts, read_listed
from real_card.rows.conformance import SOURCES
from simgpu.conformance.programs import Facts, asked_all_at_once, listed, outcomes

pytestmark = pytest.mark.slow

PROFILES: Final = ("h200", "h200", "l4")
RECORDS: Final = sorted((SOURCES / "expected").glob("*.txt"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Facts]:
    """Facts of cards with these profiles."""
    return asked_all_at_once(tmp_path_factory.mktemp("cards"), PROFILES)


def test_every_case_ends_on_every_card_and_is_done_on_one(told: Sequence[Facts]) -> None:
    done = set[str]()
    for facts in told:
        became = outcomes(facts)
        assert sorted(became) == sorted(listed())
        assert {case: how for case, how in became.items() if how != "done" and not how.startswith("skipped: ")} == {}
        done |= {case for case, how in became.items() if how == "done"}
    assert done == set(listed())


def test_the_same_card_tells_the_same_again(told: Sequence[Facts]) -> None:
    assert told[0] == told[1]


def test_no_fact_depends_on_the_card(told: Sequence[Facts]) -> None:
    one, other = told[0], told[-1]
    shared = {fact for fact in one.keys() & other.keys() if not fact.endswith(".outcome")}
    assert {fact: one[fact] for fact in shared} == {fact: other[fact] for fact in shared}


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_the_simulation_does_what_is_recorded_or_says_why_not(told: Sequence[Facts], record: Path) -> None:
    differences = read_listed((SOURCES / "differences.toml").read_text(), "differences.toml")
    for facts in told:
        comparison = compare(facts, read_facts(record.read_text(), record.name), differences)
        unlisted = [one for one in comparison.differences if one.reason is None]
        assert (unlisted, comparison.stale) == ([], ()), "\n".join(lines_of(comparison))


def test_every_fact_is_recorded_and_by_the_simulation_alone_where_nothing_else_is_known(
    told: Sequence[Facts],
) -> None:
    facts = {path.stem: set(read_facts(path.read_text(), path.name)) for path in RECORDS}
    sources = {path.stem: path.read_text().split("\n", 1)[0].removeprefix("# source: ") for path in RECORDS}
    assert {name for name, source in sources.items() if source != "card"} == {"documented", "measured", "simulated"}
    assert all(source in (name, "card") for name, source in sources.items())
    assert facts["documented"] & facts["measured"] == set()
    known = set[str]().union(*(each for name, each in facts.items() if name != "simulated"))
    every = {fact for one in told for fact in one if not fact.endswith(".outcome")}
    assert facts["simulated"] == every - known
    assert known <= every
