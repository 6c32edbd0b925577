"""`python -m suite check [JOB...]` and `python -m suite test [JOB...]`: the jobs named, or all.

Each job prints one line as it ends, and its output only if it failed. Nothing stops at the first failure. The last
lines say which tests and jobs took longest, why tests were skipped, name what failed, and count. Exit status: 0, 1 if
anything failed, 2 usage.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from suite import plan
from suite.pool import ROOT, Done, Job, Pool
from suite.record import Result

LOGS: Final = ROOT / ".cache/test"
CHECKS: Final = {"computing": 2, "waiting": 1}
TESTS: Final = {"computing": 1, "waiting": 2}
"""With more at once two cores are no sooner done, and what waits for an answer waits in vain."""
SLOWEST: Final = 20


def main(argv: Sequence[str]) -> int:
    """Runs what the command line names; answers the exit status."""
    # A shell's job in the background ignores SIGINT, and its programs would, too; tests interrupt theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plans = {"check": _check, "test": _test}
    if not argv or argv[0] not in plans:
        sys.stderr.write(f"usage: suite {'|'.join(plans)} [JOB...]\n")
        return 2
    try:
        return plans[argv[0]](argv[1:])
    except KeyboardInterrupt:
        return 130


def _check(names: Sequence[str]) -> int:
    os.environ["HYPOTHESIS_PROFILE"] = "quick"
    jobs = _named(names, plan.inner_loop())
    if jobs is None:
        return 2
    done = Pool(LOGS / "check", **CHECKS).run(jobs, _say)
    return int(any(each.failures for each in done))


def _test(names: Sequence[str]) -> int:
    started = time.monotonic()
    builds, jobs = plan.builds(), _named(names, plan.everything())
    if jobs is None:
        return 2
    pool = [Pool(LOGS, **TESTS) for _ in range(2)]
    done = [*pool[0].run(builds, _say), *pool[1].run(jobs, _say)]
    return report(done, time.monotonic() - started)


def _named(names: Sequence[str], jobs: list[Job]) -> list[Job] | None:
    unknown = set(names) - {job.name for job in jobs}
    if unknown:
        sys.stderr.write(f"no job {', '.join(sorted(unknown))}; there is: {', '.join(job.name for job in jobs)}\n")
        return None
    return [job for job in jobs if not names or job.name in names]


def report(done: Sequence[Done], seconds: float) -> int:
    """Says what took longest, what was skipped and what failed; answers the exit status."""
    tests = sorted((test for each in done for test in each.tests), key=lambda test: -test.seconds)
    failures = [failure for each in done for failure in each.failures]
    lines = ["", "seconds by job (wall, processor):"]
    lines += [_line(each) for each in sorted(done, key=lambda each: -each.seconds)]
    lines += ["", f"the {SLOWEST} slowest tests:", *(f"{each.seconds:7.1f} s  {each.test}" for each in tests[:SLOWEST])]
    lines += ["", f"{seconds:.0f} s in all", *_skips(tests)]
    lines += [f"FAILED {failure}" for failure in failures]
    lines += [f"partage: {sum(each.passed for each in done)} passed, {len(failures)} failed"]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(failures))


def _skips(tests: Iterable[Result]) -> list[str]:
    """Each reason once, with how many tests had it: a promise that was not tried here is not hidden among the kept."""
    reasons = Counter(test.why for test in tests if test.outcome == "skipped")
    return [f"SKIPPED {count}: {reason or 'no reason given'}" for reason, count in sorted(reasons.items())]


def _say(done: Done) -> None:
    output = "".join(f"    {line}\n" for line in done.output.splitlines()) if done.failures else ""
    sys.stdout.write(f"{_line(done)}\n{output}")
    sys.stdout.flush()


def _line(done: Done) -> str:
    verdict = "FAILED" if done.failures else "ok"
    return f"{verdict:6} {done.job.name:32} {done.seconds:7.1f} s {done.processor_seconds:7.1f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
