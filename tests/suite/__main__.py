"""`python -m suite check [JOB...]` and `python -m suite test [--all] [JOB...]`: run the named jobs, or all.

Each job prints one line when it ends, and its output only if it failed. A check that passed before on the same files is
skipped unless it is named. Nothing stops at the first failure. At the end of `test`, failed tests that used other
processes are run again (`suite.second`). The last lines show the slowest tests and jobs, the reasons for skips, the
unsteady and the failed tests, and the totals. Exit status: 0, 1 if anything failed, 2 usage.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite import plan
from suite.history import Checkout, History, Run, last
from suite.janitor import run_folder
from suite.listing import listing
from suite.passed import Passed
from suite.pool import ROOT, Done, Job, Pool
from suite.report import report, say
from suite.second import settle
from suite.steady import steady
from support.extent import EXTENT

LOGS: Final = ROOT / ".cache/test"
CHECKS: Final = {"computing": 2, "waiting": 1}
TESTS: Final = {"computing": 1, "waiting": 4}
"""On two cores a waiting job uses two fifths of a core, and a computing job half of one, beside the others."""


def main(argv: Sequence[str]) -> int:
    """Run what the command line names; returns the exit status."""
    # A shell's background job ignores SIGINT, and so would its programs; but tests interrupt theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="suite")
    kinds = parser.add_subparsers(required=True)
    check = kinds.add_parser("check", prog="tools/check", help="the inner loop")
    check.add_argument("jobs", nargs="*", metavar="JOB", help="such as lint; all where none is named")
    check.set_defaults(run=_check)
    test = kinds.add_parser("test", prog="tools/test", help="what every push needs, or everything")
    test.add_argument("jobs", nargs="*", metavar="JOB", help="such as unit/cli or lint; all where none is named")
    test.add_argument("--all", action="store_true", help="everything: also what is extended")
    test.add_argument("--part", choices=plan.PARTS, help="with --all: one part of it; all parts make a whole run")
    test.add_argument(
        "--list", action="store_true", help="print which test is where and why, as tests/suite/list.txt has it"
    )
    test.add_argument("--last", action="store_true", help="print the newest green runs, and whether HEAD is among them")
    test.add_argument("--steady", metavar="TEST", help="run one test many times beside a load of every core")
    test.add_argument("--times", type=int, default=30, help="how often --steady runs it (%(default)s)")
    test.set_defaults(run=_test)
    return parser


def _check(arguments: argparse.Namespace) -> int:
    os.environ["HYPOTHESIS_PROFILE"] = "quick"
    jobs = _named(arguments.jobs, plan.inner_loop())
    if jobs is None:
        return 2
    with run_folder() as (folder, remove):
        done = Pool(LOGS / "check", folder, **CHECKS, passed=Passed.of_user()).run(jobs, say)
        status = int(any(each.failures for each in done))
        if status == 0:
            remove()
    return status


def _test(arguments: argparse.Namespace) -> int:
    if arguments.list:
        sys.stdout.write(listing(ROOT))
        return 0
    if arguments.last:
        sys.stdout.write("".join(f"{line}\n" for line in last(History.of_user(), ROOT)))
        return 0
    if arguments.steady:
        return steady(arguments.steady, arguments.times, LOGS)
    is_all = arguments.all or arguments.part
    if is_all:
        os.environ[EXTENT] = "all"
    jobs = _named(arguments.jobs, plan.everything() if is_all or arguments.jobs else plan.every_push())
    if jobs is None:
        return 2
    chosen = [job for job in jobs if arguments.part in {None, plan.part_of(job)}]
    asked = tuple(job.name for job in chosen) if arguments.jobs or arguments.part else ()
    return _run(chosen, Run("test-all" if is_all else "test", jobs=asked, part=arguments.part or ""))


def _run(jobs: Sequence[Job], run: Run) -> int:
    started, before, history = time.monotonic(), Checkout.find(ROOT), History.of_user()
    with run_folder() as (folder, remove):

        def ran(jobs: Sequence[Job], logs: Path = LOGS) -> list[Done]:
            return Pool(logs, folder, **TESTS, passed=Passed.of_user()).run(jobs, say)

        done = [*ran(plan.builds()), *ran([*plan.built_beside(), *jobs])]
        settled = settle(done, lambda job: ran([job], LOGS / "again")[0], history.times_unsteady)
        seconds = time.monotonic() - started
        status = report(done, settled, seconds)
        if status == 0:
            remove()
    if before.commit:
        unsteady = {each.first.test: each.first.why for each in settled.unsteady}
        clean = before.clean and Checkout.find(ROOT) == before
        done_run = replace(run, commit=before.commit, clean=clean, seconds=round(seconds), unsteady=unsteady)
        _remember(history, replace(done_run, green=status == 0))
    return status


def _remember(history: History, run: Run) -> None:
    """Record the run; a full disk must not fail a green run."""
    try:
        history.remember(run, plan.PARTS)
    except OSError as error:
        sys.stderr.write(f"this run is not recorded: {error}\n")


def _named(names: Sequence[str], jobs: list[Job]) -> list[Job] | None:
    unknown = set(names) - {job.name for job in jobs}
    if unknown:
        sys.stderr.write(f"no job {', '.join(sorted(unknown))}; there is: {', '.join(job.name for job in jobs)}\n")
        return None
    return [replace(job, reads=()) for job in jobs if job.name in names] if names else jobs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
