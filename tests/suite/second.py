"""Second tries: a failed test that uses other processes is run again after the rest of the run.

If it then passes it is unsteady: it is named and counted, and the run stays green. It is run alone and, if it shares a
fixture with other processes, also after the tests that used that fixture before it. If only the run alone passes, an
earlier test left something behind, which is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from suite.pool import Done, Job
from suite.record import Result

MOST: Final = 3
"""With more unsteady tests a run is red, so more failures than this get no second try."""
TOO_OFTEN: Final = 3
"""A test that is unsteady in this many of the last ten runs is a failure."""

Again = Callable[[Job], Done]
Earlier = Callable[[str, str], int]
"""How often a test of a job was unsteady in the last nine runs that included the job."""


@dataclass(frozen=True)
class Failed:
    job: Job
    first: Result
    before: tuple[str, ...] = ()
    """The tests that used one of its shared fixtures before it, in order."""

    @property
    def text(self) -> str:
        return f"{self.first.test}{self.first.why}"


@dataclass(frozen=True)
class Settled:
    """The failures that remain after the second tries."""

    failures: tuple[str, ...]
    unsteady: tuple[Failed, ...] = ()


def settle(done: Sequence[Done], again: Again, earlier: Earlier) -> Settled:
    failed = [failure for each in done for failure in failures_of(each)]
    problems = [problem for each in done if each.job.is_pytest for problem in each.problems]
    tried = [failure for failure in failed if failure.first.external]
    final = [failure.text for failure in failed if not failure.first.external]
    if len(tried) > MOST:
        return Settled((*final, *(f"{each.text} (one of {len(tried)}: not run again)" for each in tried), *problems))
    whys = [(each, why_red(each, again) or _why_too_often(each, earlier)) for each in tried]
    final += [f"{each.text}; {why}" for each, why in whys if why]
    return Settled((*final, *problems), tuple(each for each, why in whys if not why))


def failures_of(done: Done) -> list[Failed]:
    """Failures of a job. A demonstration or a benchmark that talks to other processes fails as a whole."""
    job = done.job
    if not job.is_pytest:
        return [
            Failed(job, Result(job.name, "failed", why=problem.removeprefix(job.name), external=job.waits))
            for problem in done.problems
        ]
    return [Failed(job, test, _before(test, done.tests)) for test in done.failed]


def _before(failed: Result, tests: Sequence[Result]) -> tuple[str, ...]:
    earlier = tests[: tests.index(failed)]
    return tuple(test.test for test in earlier if set(test.shared) & set(failed.shared))


def why_red(failed: Failed, again: Again) -> str | None:
    """Run the test again; returns why it is a failure, or None if it is only unsteady."""
    alone = _outcome(failed, "alone", (), again)
    if alone is not None:
        return f"alone{alone}"
    if failed.before and (why := _outcome(failed, "after the others", failed.before, again)) is not None:
        return f"passes alone, so an earlier test left something behind: after {len(failed.before)} others{why}"
    return None


def _outcome(failed: Failed, how: str, before: tuple[str, ...], again: Again) -> str | None:
    """Why it failed again, or None."""
    job = replace(failed.job, name=f"{failed.first.test} {how}")
    if not job.is_pytest:
        return "".join(problem.removeprefix(job.name) for problem in again(job).problems) or None
    done = again(replace(job, only=(*before, failed.first.test)))
    result = next((test for test in done.tests if test.test == failed.first.test), None)
    if result is None:
        return f": it did not run; {'; '.join(done.problems) or 'it was not found'}"
    return None if result.outcome == "passed" else result.why


def _why_too_often(failed: Failed, earlier: Earlier) -> str | None:
    times = 1 + earlier(failed.first.test, failed.job.name)
    return f"unsteady in {times} of the last ten runs: mend it" if times >= TOO_OFTEN else None
