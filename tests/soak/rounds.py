"""Tests of the rig that repeat something, with many rounds: crishim exchanged and killed, critest in several orders.

    make soak-rounds            # ten restarts, ten kills, three runs of critest on each way: about ten minutes
    tools/named soak rounds --rounds 30

Exit status: pytest's.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
REPEATING: Final = ("real/crishim/test_restarts.py", "real/conformance")


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak rounds", description="repeats what make test does a few times")
    parser.add_argument("--rounds", type=int, default=10, help="of each restart, by default 10")
    os.environ["TEST_ROUNDS"] = str(parser.parse_args().rounds)
    return pytest.main([str(TESTS / each) for each in REPEATING])


if __name__ == "__main__":
    raise SystemExit(main())
