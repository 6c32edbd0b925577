"""The output of a run: a line for each job as it ends, and a summary of slow, skipped, unsteady and failed tests."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from suite.pool import Done
from suite.record import Result
from suite.second import Settled

SLOWEST: Final = 20


def say(done: Done) -> None:
    output = "".join(f"    {line}\n" for line in done.output.splitlines()) if done.failures else ""
    sys.stdout.write(f"{_line(done)}\n{output}")
    sys.stdout.flush()


def report(done: Sequence[Done], settled: Settled, seconds: float) -> int:
    """Print the summary; returns the exit status."""
    tests = sorted((test for each in done for test in each.tests), key=lambda test: -test.seconds)
    passed = sum(each.passed for each in done) + len(settled.unsteady)
    lines = ["", "seconds by job (wall, processor):"]
    lines += [_line(each) for each in sorted(done, key=lambda each: -each.seconds)]
    lines += ["", f"the {SLOWEST} slowest tests:", *(f"{each.seconds:7.1f} s  {each.test}" for each in tests[:SLOWEST])]
    lines += ["", f"{seconds:.0f} s in all", *_skips(tests)]
    lines += [f"UNSTEADY {each.text}" for each in settled.unsteady]
    lines += [f"FAILED {failure}" for failure in settled.failures]
    lines += [f"partage: {passed} passed, {len(settled.failures)} failed"]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(settled.failures))


def _skips(tests: Iterable[Result]) -> list[str]:
    """Each reason with its number of tests, so that guarantees that were not tested here are visible."""
    reasons = Counter(test.why for test in tests if test.outcome == "skipped")
    return [f"SKIPPED {count}: {reason or 'no reason given'}" for reason, count in sorted(reasons.items())]


def _line(done: Done) -> str:
    verdict = "FAILED" if done.failures else "ok"
    known = "  passed before on the same files" if done.is_known else ""
    return f"{verdict:6} {done.job.name:32} {done.seconds:7.1f} s {done.processor_seconds:7.1f} s{known}"
