"""`tools/real`: asks this machine's card the questions in order of importance, within a limit of time.

Exit status: 0 when every answered row is as expected; 3 when one differs; 1 when there is no card, a row failed, or the
card is not as it was; 2 usage; 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import MsgspecError

from partage_simgpu.errors import SimulationError
from partage_simgpu.profiles import load_profile
from real_card.ground import CACHE, DRIVER_ROOT, SIMULATED, NoGround
from real_card.plan import named
from real_card.process import leaving_nothing
from real_card.result import NO_TIME, Result, merged, read, settled
from real_card.row import Row
from real_card.rows import EVERY
from real_card.runner import Answers, ask
from support.simgpu import simulated_node

DIFFERS: Final = 3
INTERRUPTED: Final = 130
MINUTES: Final = 8.0
_USAGE: Final = 2


class WrongWords(Exception):
    """The command line is invalid; the message says what to type."""


def main(argv: Sequence[str] | None = None) -> int:
    began = time.monotonic()
    given = _arguments(argv)
    try:
        rows, known = _wanted(given)
        if not rows:
            return _refuse(f"{given.missing} lacks none of these rows", 0)
        if given.list:
            sys.stdout.writelines(f"{row.name:28} {row.cost_s:4g} s  {row.asks}\n" for row in rows)
            return 0
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that child processes are ended, too
        with leaving_nothing(), _card(given.simulated):
            until = began + given.minutes * 60
            return _said(ask(rows, given.out, known, until, own_card=given.own_card, say=_say), given.out)
    except WrongWords as error:
        return _refuse(str(error), _USAGE)
    except (NoGround, SimulationError, OSError) as error:
        return _refuse(str(error), 1)
    except KeyboardInterrupt:
        return _refuse(f"interrupted; what was answered is in {given.out}", INTERRUPTED)


def _refuse(why: str, status: int) -> int:
    sys.stderr.write(f"real: {why}\n")
    return status


def _wanted(given: argparse.Namespace) -> tuple[Sequence[Row], Result]:
    """The rows to ask, in order, and the known answers. A file that contains no answers is never overwritten."""
    earlier = _read(given.out) if given.out.exists() else Result()
    missing = _read(given.missing) if given.missing else Result()
    try:
        rows = named(EVERY, given.row) if given.row else EVERY
    except KeyError as error:
        raise WrongWords(f"--row: there is no row {error}; --list names them") from error
    done = settled(missing, simulated=bool(given.simulated))
    lacking = [row for row in rows if row.name not in done]
    return lacking, merged((earlier, missing))


def _read(path: Path) -> Result:
    try:
        return read(path)
    except (OSError, MsgspecError) as error:
        raise WrongWords(f"{path}: no answers of a card ({error}); name another file") from error


def _said(answers: Answers, path: Path) -> int:
    found = answers.of_run()
    differ = [each.row for each in found if each.agrees is False]
    failed = [each.row for each in found if each.state in ("failed", "hung")]
    counts = {state: sum(each.state == state for each in found) for state in ("answered", "absent", NO_TIME)}
    _say(
        f"{len(found)} rows: {counts['answered']} answered, {len(differ)} of these differ; {len(failed)} failed, "
        f"{counts['absent']} absent, {counts[NO_TIME]} without time; {path}"
    )
    run = answers.run
    if not run.left_as_found:
        _say(f"the card is not as it was: {run.before} before, {run.after} now")
    return 1 if failed or not run.left_as_found else DIFFERS if differ else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def _card(simulated: str | None) -> Generator[None]:
    """The machine's own card, or a simulated one that programs find like a real driver."""
    if simulated is None:
        yield
        return
    load_profile(simulated)
    with (
        tempfile.TemporaryDirectory(prefix="rs-", dir="/tmp") as name,
        simulated_node(Path(name), cards=[simulated]) as node,
    ):
        added = {**node.environment, DRIVER_ROOT: str(node.root), SIMULATED: simulated}
        before = dict(os.environ)
        os.environ.update(added)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def minutes(word: str) -> float:
    count = float(word)
    if not 0 < count < float("inf"):
        raise ValueError(word)
    return count


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/real",
        description="Asks a card what partage rests on, what decides most first. Each answer is written at once.",
        epilog="Also: `tools/real carry --help`, `tools/real facts --help`, `tools/real page --help`.",
    )
    parser.add_argument(
        "--minutes",
        type=minutes,
        default=MINUTES,
        help="all of it takes at most so long (%(default)g); what does not fit is skipped",
    )
    parser.add_argument("--missing", type=Path, metavar="FILE", help="ask what FILE lacks; its answers are kept")
    parser.add_argument("--row", action="append", metavar="NAME", help="only this, or NAME-*; repeatable")
    parser.add_argument("--list", action="store_true", help="list the rows instead, in their order, with their costs")
    parser.add_argument("--simulated", metavar="PROFILE", help="ask a simulated card, such as h100")
    parser.add_argument(
        "--own-card",
        action="store_true",
        help="nobody else uses the card: managed memory may be more than half of what is free",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the answers go; earlier ones there are kept")
    given = parser.parse_args(argv)
    given.out = given.out or CACHE / (f"simulated-{given.simulated}.json" if given.simulated else "result.json")
    return given


if __name__ == "__main__":
    sys.exit(main())
