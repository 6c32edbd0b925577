"""A hundred programs start containers with 30 % of a card at once, on eight cards, while every service dies.

    make soak-machine            # 20 rounds, some ten minutes
    tools/named soak machine --rounds 2 --seed 7

In each round manager, crishim, broker, containerd and inventory are killed at moments that the seed chooses. 24 fit;
the others must be told why. What is given of each card is looked at all the time in the runtime's own list. After each
round runtime, manager, broker and those who asked must say the same. It prints what it found and, as its last line, one
JSON object. Exit status: 0 when all is well, 3 when something was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Final

from soak.starts.rounds import CARDS, Found, Ground, one_round, wait_forgotten
from support.machine_stage import machine_up

EXIT_WRONG: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak machine", description="many starts at once, while services die")
    parser.add_argument("--rounds", type=int, default=20, help="how many, by default 20")
    parser.add_argument("--seed", type=int, default=1, help="of the first round, by default 1")
    told = parser.parse_args()
    found: list[Found] = []
    with machine_up(CARDS, say=_say) as stage:
        ground = Ground.on(stage)
        for seed in range(told.seed, told.seed + told.rounds):
            found.append(each := one_round(ground, seed))
            _say(f"seed {seed}: {each.ran} run, {each.told_why} are told why; wrong: {each.wrong or 'nothing'}")
        wait_forgotten(ground)
    sys.stdout.write(json.dumps({"soak": "machine", "rounds": [asdict(each) for each in found]}) + "\n")
    return EXIT_WRONG if any(each.wrong for each in found) else 0


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
