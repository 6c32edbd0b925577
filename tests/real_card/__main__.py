"""`python -m real_card [bare|library|time]... [--row NAME]... [--simulated PROFILE] [--out FILE]`.

Exit status: 0 when every row that a card answered is as expected; 3 where one differs; 1 where there is no card or a
row failed; 2 usage.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_simgpu.errors import SimulationError
from partage_simgpu.profiles import load_profile
from real_card.ground import CACHE, DRIVER_ROOT, SIMULATED, NoGround
from real_card.result import Result
from real_card.row import Part, Row, named
from real_card.rows import EVERY, ROWS
from real_card.runner import ask
from support.simgpu import simulated_node

DIFFERS: Final = 3
_LISTED: Final = "list"


def main(argv: Sequence[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended then, too
    given = _arguments(argv)
    if given.parts == [_LISTED]:
        sys.stdout.writelines(f"{row.part.value:8} {row.name:28} {row.asks}\n" for row in EVERY)
        return 0
    try:
        parts = [Part(each) for each in given.parts] or list(Part)
        rows = [named(EVERY, given.row)] if given.row else [list(ROWS[part]) for part in parts]
    except (ValueError, KeyError) as error:
        sys.stderr.write(f"real: {error}: there is no such part or row; `tools/real list` names them\n")
        return 2
    try:
        with _card(given.simulated):
            found = _asked(rows, given.out)
    except (NoGround, SimulationError, OSError) as error:
        sys.stderr.write(f"real: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(f"real: interrupted; what was answered is in {given.out}\n")
        return 130
    return _said(found, {row.name for part in rows for row in part}, given.out)


def _asked(parts: Sequence[Sequence[Row]], path: Path) -> Result:
    """Each part has its time for itself."""
    *first, last = parts
    for rows in first:
        ask(rows, path, _say)
    return ask(last, path, _say)


def _said(found: Result, asked: set[str], path: Path) -> int:
    answers = [each for each in found.answers if each.row in asked]
    differ = [each.row for each in answers if each.agrees is False]
    failed = [each.row for each in answers if each.state in ("failed", "hung", "no time")]
    _say(f"{len(answers)} rows; {len(differ)} differ, {len(failed)} failed; {path}")
    if not found.left_as_found:
        _say(f"the card is not as it was: {found.before} before, {found.after} now")
    return 1 if failed or not found.left_as_found else DIFFERS if differ else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def _card(simulated: str | None) -> Generator[None]:
    """The machine's own, or a simulated one, which programs find as they would find a driver."""
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


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/real", description="asks a real card what it does, and what we do to it"
    )
    parser.add_argument(
        "parts", nargs="*", metavar="bare|library|time", help="all three without one; `list` names rows"
    )
    parser.add_argument("--row", action="append", help="only this one; repeatable")
    parser.add_argument("--simulated", metavar="PROFILE", help="ask a simulated card, such as h100")
    parser.add_argument("--out", type=Path, help="where the answers go; those of other rows stay there")
    given = parser.parse_args(argv)
    given.out = given.out or CACHE / (f"simulated-{given.simulated}.json" if given.simulated else "result.json")
    return given


if __name__ == "__main__":
    sys.exit(main())
