"""SharePods come and go while their controller is killed again and again: 100 of them, and 20 kills.

    make soak-sharepods
    tools/named soak sharepods --sharepods 200 --kills 50

The test of the same name with more of everything: in the end each status is right, no pod is without its SharePod and
none was made twice. Exit status: pytest's.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

import pytest

TEST: Final = Path(__file__).parents[1] / "real/scheduler/sharepods/test_kills.py"


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak sharepods", description="SharePods, while their controller is killed")
    parser.add_argument("--sharepods", type=int, default=100, help="there at once, by default 100")
    parser.add_argument("--kills", type=int, default=20, help="of the controller, by default 20")
    given = parser.parse_args()
    os.environ |= {"TEST_SHAREPODS": str(given.sharepods), "TEST_KILLS": str(given.kills)}
    return pytest.main(["-q", "-s", "--timeout=3600", str(TEST)])


if __name__ == "__main__":
    raise SystemExit(main())
