"""Repetitive tests with many rounds: `make test` does only one or a few.

    make soak-rounds                       # all of them, as often as the table says: about half an hour
    tools/named soak rounds sharepods
    TEST_ROUNDS=30 tools/named soak rounds crishim

Exit status: pytest's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

TESTS: Final = Path(__file__).parents[1]


class Repeated(NamedTuple):
    tests: tuple[str, ...]
    often: Mapping[str, str]
    """Number of rounds by the variables that those tests read."""


TABLE: Final[Mapping[str, Repeated]] = {
    "crishim": Repeated(("real/crishim/test_restarts.py", "real/conformance"), {"TEST_ROUNDS": "10"}),
    "exits": Repeated(("isolation/gates/test_exits.py",), {"TEST_ENDS": "160", "TEST_ENDS_UNDER_TOOLS": "10"}),
    "feasible": Repeated(("real/scheduler/test_feasible.py",), {"TEST_CLUSTERS": "40"}),
    "growth": Repeated(("isolation/memory/test_growth.py",), {"TEST_SEEDS": "100"}),
    "leases": Repeated(
        ("isolation/timeslices/test_chaos.py", "isolation/timeslices/test_programs.py"),
        {"TEST_STEPS": "1000", "TEST_BROKER_KILLS": "100"},
    ),
    "moving": Repeated(("isolation/migration/test_kills.py",), {"TEST_RUNS": "100"}),
    "limits": Repeated(("isolation/broker/test_restarts.py",), {"TEST_BROKER_KILLS": "100"}),
    "resize": Repeated(("real/chain/test_resizing.py",), {"TEST_WISHES": "300"}),
    "sharepods": Repeated(("real/sharepods/test_kills.py",), {"TEST_SHAREPODS": "100", "TEST_KILLS": "20"}),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak rounds", description="repeats what make test does a few times")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLE)}; by default all")
    names = parser.parse_args().names or [*TABLE]
    if unknown := set(names) - set(TABLE):
        parser.error(f"no {', '.join(sorted(unknown))}; there is: {', '.join(TABLE)}")
    chosen = [TABLE[name] for name in names]
    for each in chosen:
        os.environ |= {**each.often, **os.environ}
    return pytest.main(["-q", "-s", "--timeout=3600", *(str(TESTS / path) for each in chosen for path in each.tests)])


if __name__ == "__main__":
    raise SystemExit(main())
