"""Prints a driver's facts from the conformance program, sorted, or compares them: `tools/real facts FILE`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import MsgspecError

from real_card import result
from real_card.comparison import Unreadable, compare, lines_of, read_facts, read_listed, summary
from real_card.result import Result
from real_card.rows.conformance import PREFIX, SOURCES


def told(found: Result) -> dict[str, str]:
    """Facts of the last run that asked; each area is a row."""
    facts: dict[str, str] = {}
    for answer in sorted(found.answers, key=lambda each: found.runs[each.run].began):
        if answer.row.startswith(f"{PREFIX}-"):
            facts.update(answer.facts)
    return facts


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/real facts", description="Prints what a driver told the conformance program."
    )
    parser.add_argument("answers", type=Path, metavar="FILE", help="of tools/real")
    parser.add_argument("--against", type=Path, metavar="RECORD", help="print what differs from it alone; exit 3 then")
    given = parser.parse_args(words)
    try:
        facts = told(result.read(given.answers))
    except (OSError, MsgspecError) as error:
        return _refuse(f"{given.answers}: no answers of a card ({error})")
    try:
        recorded = read_facts(given.against.read_text(), str(given.against)) if given.against else None
        listed = read_listed((SOURCES / "differences.toml").read_text(), "differences.toml")
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        return _refuse(f"{given.against}: no record ({error})")
    if recorded is None:
        sys.stdout.writelines(f"{fact} = {value}\n" for fact, value in sorted(facts.items()))
        return 0
    comparison = compare(facts, recorded, listed)
    sys.stdout.writelines(f"{line}\n" for line in lines_of(comparison))
    sys.stderr.write(f"{summary(comparison)}\n")
    return 0 if comparison.fine else 3


def _refuse(why: str) -> int:
    sys.stderr.write(f"real: {why}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
