"""The conformance program on simulated cards: every case ends, tells the same again, and what documentation says."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from partage_simgpu.comparison import compare, lines_of, read_facts, read_listed
from simgpu.conformance.programs import SOURCES, Facts, asked_all_at_once, outcomes
from support.simgpu import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROFILES: Final = ("h200", "h200", "h100", "l4")
RECORDS: Final = sorted((SOURCES / "expected").glob("*.txt"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Facts]:
    """What cards of these profiles told."""
    return asked_all_at_once(tmp_path_factory.mktemp("cards"), PROFILES)


def recorded() -> Facts:
    return {fact: value for path in RECORDS for fact, value in read_facts(path.read_text(), path.name).items()}


def test_every_case_comes_to_its_end_on_every_card(told: Sequence[Facts]) -> None:
    listed = subprocess.check_output([built() / "conformance", "--list"], text=True).split()
    for facts in told:
        became = outcomes(facts)
        assert sorted(became) == sorted(listed)
        assert {case: how for case, how in became.items() if how != "done" and not how.startswith("skipped: ")} == {}


def test_every_case_is_done_on_one_card_or_another(told: Sequence[Facts]) -> None:
    done = {case for facts in told for case, how in outcomes(facts).items() if how == "done"}
    assert done == set(outcomes(told[0]))


def test_the_same_card_tells_the_same_again(told: Sequence[Facts]) -> None:
    assert told[0] == told[1]


def test_no_fact_depends_on_the_card(told: Sequence[Facts]) -> None:
    first, *others = told
    for facts in others:
        assert {fact: value for fact, value in facts.items() if fact in first and not fact.endswith(".outcome")} == {
            fact: value for fact, value in first.items() if fact in facts and not fact.endswith(".outcome")
        }


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_the_simulation_does_what_is_recorded_or_says_why_not(told: Sequence[Facts], record: Path) -> None:
    listed = read_listed((SOURCES / "differences.toml").read_text(), "differences.toml")
    for facts in told:
        comparison = compare(facts, read_facts(record.read_text(), record.name), listed)
        unlisted = [one for one in comparison.differences if one.reason is None]
        assert (unlisted, comparison.stale) == ([], ()), "\n".join(lines_of(comparison))


def test_what_is_recorded_is_asked(told: Sequence[Facts]) -> None:
    assert recorded().keys() <= {fact for facts in told for fact in facts}


def test_a_record_says_where_it_is_from() -> None:
    sources = {path.read_text().split("\n", 1)[0] for path in RECORDS}
    assert sources == {"# source: documented", "# source: measured"}
