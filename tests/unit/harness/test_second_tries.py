"""Which failures of a run are final, and which are those of unsteady tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from suite.pool import Done, Job
from suite.record import Result
from suite.second import Settled, settle

LANE = Job("lane", ("pytest",), is_pytest=True)
BENCH = Job("bench chain", ("bench",), waits=True)
LINT = Job("lint", ("ruff",))
RIG = ("tests/real::rig",)


def failed(name: str, *, external: bool = True, shared: tuple[str, ...] = ()) -> Result:
    return Result(name, "failed", why=": no answer", external=external, shared=shared)


def ended(job: Job, *tests: Result) -> Done:
    return Done(job, 1.0, 1.0, "", (), tests)


def settled(
    *done: Done, fail_again: Collection[tuple[str, ...]] = (), unsteady_before: Mapping[str, int] | None = None
) -> tuple[Settled, list[tuple[str, ...]]]:
    """Settles a run. The last test of a job in `fail_again` fails again, a command in it always fails."""
    asked: list[tuple[str, ...]] = []

    def again(job: Job) -> Done:
        asked.append(job.only)
        if not job.is_pytest:
            return Done(job, 1.0, 1.0, "", (f"{job.name}: exit 1",) if job.argv in fail_again else ())
        outcome = failed(job.only[-1]) if job.only in fail_again else Result(job.only[-1], "passed")
        return ended(job, *(Result(test, "passed") for test in job.only[:-1]), outcome)

    return settle(done, again, lambda test, _: (unsteady_before or {}).get(test, 0)), asked


def test_a_test_that_uses_other_processes_and_passes_when_run_again_is_unsteady() -> None:
    outcome, asked = settled(ended(LANE, failed("a"), Result("b", "passed")))
    assert outcome.failures == ()
    assert [each.text for each in outcome.unsteady] == ["a: no answer"]
    assert asked == [("a",)]


def test_one_that_fails_again_is_a_failure() -> None:
    outcome, _ = settled(ended(LANE, failed("a")), fail_again=[("a",)])
    assert outcome == Settled(("a: no answer; alone: no answer",))


def test_a_test_that_uses_no_other_process_gets_no_second_try() -> None:
    outcome, asked = settled(ended(LANE, failed("a", external=False)))
    assert outcome == Settled(("a: no answer",))
    assert not asked


def test_a_test_of_a_shared_rig_is_also_run_after_those_that_used_the_rig_before_it() -> None:
    before = Result("x", "passed", shared=RIG), Result("y", "passed", shared=("tests/real::other",))
    later = Result("z", "passed", shared=RIG)
    outcome, asked = settled(ended(LANE, *before, failed("a", shared=RIG), later))
    assert len(outcome.unsteady) == 1
    assert asked == [("a",), ("x", "a")]


def test_one_that_passes_alone_and_fails_after_the_others_says_that_something_was_left_behind() -> None:
    tests = Result("x", "passed", shared=RIG), failed("a", shared=RIG)
    outcome, _ = settled(ended(LANE, *tests), fail_again=[("x", "a")])
    (failure,) = outcome.failures
    assert failure == (
        "a: no answer; passes alone, so an earlier test left something behind: after 1 others: no answer"
    )


def test_with_more_than_three_a_run_is_red_and_none_is_run_again() -> None:
    outcome, asked = settled(ended(LANE, *(failed(name) for name in "abcd")))
    assert len(outcome.failures) == 4
    assert not asked


@pytest.mark.parametrize(
    ("times", "failures"), [(1, ()), (2, ("a: no answer; unsteady in 3 of the last ten runs: mend it",))]
)
def test_one_that_is_unsteady_for_the_third_time_in_ten_runs_is_red(times: int, failures: tuple[str, ...]) -> None:
    outcome, _ = settled(ended(LANE, failed("a")), unsteady_before={"a": times})
    assert outcome.failures == failures


def test_what_is_no_failure_of_a_test_stays_a_failure() -> None:
    lost = Done(LANE, 1.0, 1.0, "", ("lane: pytest ended with 2",))
    outcome, asked = settled(lost, Done(LINT, 1.0, 1.0, "", ("lint: exit 1",)))
    assert sorted(outcome.failures) == ["lane: pytest ended with 2", "lint: exit 1"]
    assert not asked


@pytest.mark.parametrize(
    ("fail_again", "failures"), [((), ()), ((BENCH.argv,), ("bench chain: exit 1; alone: exit 1",))]
)
def test_a_program_that_talks_to_others_is_run_again_as_a_whole(
    fail_again: tuple[tuple[str, ...], ...], failures: tuple[str, ...]
) -> None:
    outcome, _ = settled(Done(BENCH, 1.0, 1.0, "", ("bench chain: exit 1",)), fail_again=fail_again)
    assert outcome.failures == failures
    assert bool(outcome.unsteady) == (not failures)
