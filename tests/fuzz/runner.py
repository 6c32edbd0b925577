"""Runs fuzz targets: `runner.py NAME --seconds 30`, `runner.py all`, `runner.py NAME --replay FILE`, `--list`.

A target is a module `tests/fuzz/NAME.py` with

- a docstring whose first line is the invariant,
- `target(data: bytes)`, which raises nothing unless the invariant is broken; it may return a word for the outcome,
  and inputs with a new word are kept for the search;
- `SEEDS: tuple[bytes, ...]`, where the search starts, and optionally `DICTIONARY: tuple[bytes, ...]`, tokens of the
  format,
- optionally `change(data, rng)`, which changes an input so that it still has the format.

Inputs that once failed are in `tests/fuzz/regressions/NAME/` and run first. Exit status: 0 nothing found, 2 wrong
usage, 3 the invariant is broken; the input is then shortened, kept and printed with the command that reruns it.
"""

import argparse
import hashlib
import random
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

if __name__ == "__main__":  # as a program it finds its modules itself, whether or not the project is installed
    sys.path[0:0] = [str(Path(__file__).resolve().parents[1])]

from fuzz.engine.campaign import Campaign
from fuzz.engine.execution import WAITS, Executor, Failure, Limits
from fuzz.engine.mutation import MAX_BYTES, Mutator
from fuzz.engine.reach import Reach
from fuzz.engine.subject import NoSubject, Subject, load, names_in
from fuzz.engine.supervision import Journal, supervised

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
MINIMISING_S: Final = 3.0
EXIT_USAGE: Final = 2
EXIT_BROKEN: Final = 3


@dataclass(frozen=True)
class Options:
    name: str
    list: bool
    seconds: float
    seed: int
    replay: Path | None
    folder: Path
    keep: Path
    input_seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line requests; returns the exit status."""
    options = parse(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.list:
        say(*names_in(options.folder))
        return 0
    names = names_in(options.folder) if options.name == "all" else [options.name]
    try:
        return max([run_one(load(options.folder, name), options) for name in names], default=0)
    except NoSubject as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE


def parse(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("name", nargs="?", default="all", help="a target, or all")
    parser.add_argument("--list", action="store_true", help="say which targets there are")
    parser.add_argument("--seconds", type=float, default=30, help="how long to search")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="go the way of an earlier run")
    parser.add_argument("--replay", type=Path, help="run the one input in this file")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the targets are")
    parser.add_argument("--keep", type=Path, default=ROOT / ".cache" / "fuzz", help="where failing inputs go")
    parser.add_argument("--input-seconds", type=float, default=Limits.seconds, help="longer on one input is a hang")
    return Options(**vars(parser.parse_args(argv)))


def run_one(subject: Subject, options: Options) -> int:
    replayed = (options.replay.read_bytes(),) if options.replay else ()
    inputs = replayed or (*subject.regressions, *subject.seeds)
    journal = Journal(max(MAX_BYTES, *map(len, inputs)))
    stalled_s = (WAITS + 1) * options.input_seconds + 1
    result = supervised(lambda: search(subject, inputs, journal, options), journal, stalled_s=stalled_s)
    if isinstance(result, Failure):
        report(subject, result, options)
        return EXIT_BROKEN
    return result


def search(subject: Subject, inputs: Sequence[bytes], journal: Journal, options: Options) -> int:
    """Searches until the time is up or a failure is found, and prints the result."""
    started = time.monotonic()
    executor = Executor(subject.target, Limits(seconds=options.input_seconds))
    rng = random.Random(options.seed)  # noqa: S311 - it makes inputs, no secrets
    campaign = Campaign(
        executor, Reach(watched(subject)), Mutator(rng, subject.dictionary, subject.change), journal.note
    )
    until = started if options.replay else started + options.seconds
    failure = campaign.search(inputs, until=until, clock=time.monotonic)
    seconds, tally = time.monotonic() - started, campaign.tally
    say(
        f"fuzz {subject.name}: {seconds:.1f} s, {tally.executions} executions, {tally.executions / seconds:.0f}/s, "
        f"{tally.outcomes} outcomes, {tally.kept} inputs kept, {tally.lines} lines reached, seed {options.seed}"
    )
    if failure is None:
        return 0
    if not options.replay:
        failure = campaign.minimised(failure, until=time.monotonic() + MINIMISING_S, clock=time.monotonic)
    report(subject, failure, options)
    return EXIT_BROKEN


def watched(subject: Subject) -> list[str]:
    """The project's own code, without its tests, and the target."""
    rooms = [f"{path}/" for path in ROOT.iterdir() if path.is_dir() and path.name != "tests" and path.name[0] != "."]
    return [*rooms, str(subject.path)]


def report(subject: Subject, failure: Failure, options: Options) -> None:
    """Keeps the input and prints everything needed to continue."""
    kept = options.keep / subject.name / f"crash-{hashlib.sha256(failure.data).hexdigest()[:8]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(failure.data)
    where = "" if options.folder == HERE else f" --folder {options.folder}"
    say(
        f"fuzz {subject.name}: BROKEN: {failure.message}",
        f"  invariant: {subject.invariant}",
        f"  input of {len(failure.data)} bytes: {failure.data[:2000]!r}{'...' if len(failure.data) > 2000 else ''}",
        f"  again: .venv/bin/python -P tests/fuzz/runner.py {subject.name}{where} --replay {kept}",
        f"  found with: --seed {options.seed}",
        failure.trace,
    )


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines if line))


if __name__ == "__main__":
    sys.exit(main())
