"""The list of exceptions is exact: a run is wrong where it is worse than the list, and where it is better."""

from __future__ import annotations

import pytest

from rig.critest import Exemption, Outcome, judge
from unit.rig.critest.samples import a_run, result

FAILS = Exemption("a", Outcome.FAILED, "nobody can")
SKIPS = Exemption("a", Outcome.SKIPPED, "no such kernel")
SOMETIMES = Exemption("a", Outcome.SKIPPED, "no such kernel", when="old kernel")


def test_a_run_in_which_everything_passes_is_right() -> None:
    assert judge(a_run(result("a"), result("b")), [], {}) == []


def test_a_failure_that_is_not_listed_is_wrong_and_shown() -> None:
    assert judge(a_run(result("a", Outcome.FAILED, "expected 2")), [], {}) == ["failed: a: expected 2"]


def test_a_spec_that_skips_itself_unlisted_is_wrong_and_shown() -> None:
    assert judge(a_run(result("a", Outcome.SKIPPED, "not here")), [], {}) == ["skipped: a: not here"]


@pytest.mark.parametrize("listed", [FAILS, SKIPS])
def test_what_ends_as_listed_is_right(listed: Exemption) -> None:
    assert judge(a_run(result("a", listed.outcome, "as ever"), result("b")), [listed], {}) == []


def test_a_listed_spec_that_passes_is_wrong() -> None:
    assert judge(a_run(result("a")), [FAILS], {}) == ["passed, but listed as failed (nobody can): a"]


def test_a_spec_that_fails_where_it_is_listed_to_skip_is_wrong_and_the_other_way_round() -> None:
    assert judge(a_run(result("a", Outcome.FAILED, "no")), [SKIPS], {}) == [
        "failed, but listed as skipped (no such kernel): a: no"
    ]
    assert judge(a_run(result("a", Outcome.SKIPPED, "no")), [FAILS], {}) == [
        "skipped, but listed as failed (nobody can): a: no"
    ]


def test_a_listed_spec_that_does_not_exist_is_wrong() -> None:
    assert judge(a_run(result("b")), [FAILS], {}) == ["listed, but there is no such spec: a"]


def test_a_condition_that_holds_excuses() -> None:
    assert judge(a_run(result("a", Outcome.SKIPPED)), [SOMETIMES], {"old kernel": True}) == []


def test_where_a_condition_does_not_hold_the_spec_must_pass() -> None:
    assert judge(a_run(result("a")), [SOMETIMES], {"old kernel": False}) == []
    assert judge(a_run(result("a", Outcome.SKIPPED, "x")), [SOMETIMES], {"old kernel": False}) == ["skipped: a: x"]


def test_where_a_condition_holds_the_spec_must_not_pass() -> None:
    wrong = judge(a_run(result("a")), [SOMETIMES], {"old kernel": True})
    assert wrong == ["passed, but listed as skipped (no such kernel): a"]


def test_a_condition_that_nobody_looks_at_is_wrong() -> None:
    assert judge(a_run(result("a")), [SOMETIMES], {}) == [
        "listed for a condition that nobody looks at, 'old kernel': a"
    ]


def test_a_spec_that_is_listed_twice_for_one_machine_is_wrong() -> None:
    run = a_run(result("a", Outcome.SKIPPED))
    assert judge(run, [SOMETIMES, SKIPS], {"old kernel": True}) == ["listed twice for this machine: a"]
    assert judge(run, [SOMETIMES, SKIPS], {"old kernel": False}) == []


def test_a_selected_spec_without_a_result_is_wrong_even_if_it_is_listed() -> None:
    assert judge(a_run(selected=("a", "b")), [FAILS], {}) == [
        "selected, but did not run: a",
        "selected, but did not run: b",
    ]


def test_an_exemption_of_a_spec_that_was_not_selected_is_left_alone() -> None:
    assert judge(a_run(result("b"), known=("a",)), [FAILS], {}) == []


def test_a_selection_of_nothing_is_wrong() -> None:
    assert judge(a_run(known=("a",)), [], {}) == ["no spec was selected"]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    run = a_run(result("a"), result("b", Outcome.FAILED, "no"), selected=("c",))
    assert len(judge(run, [FAILS, Exemption("d", Outcome.FAILED, "gone")], {})) == 4
