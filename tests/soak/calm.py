"""Programs of one container take and give back memory by every path, and none dies: none is refused with room.

    make soak-calm                       # 5,000 rounds, a quarter of an hour on a free machine
    tools/named soak calm --rounds 500 --seed 7

Nothing is excused here, as nothing is out of the broker's reach. Exit status: 0 done, 3 a refusal was wrong, or more
was taken than the limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.isolation.place import a_place
from bench.isolation.race import Race
from bench.memory import CARD, RACED_MIB, raced, warm_up

_TELL_EVERY: Final = 500
_FAILED: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak calm", description="programs race for memory, and none dies")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began_s = time.monotonic()
    with a_place(cards=(CARD,)) as place, tempfile.TemporaryDirectory() as folder:
        one = place.container(memory_mib=RACED_MIB)
        warm_up(place, one, Path(folder))
        with Race(replace(raced(place, one), seed=given.seed), Path(folder) / "race") as race:
            for number in range(1, given.rounds + 1):
                race.round(is_calm=True)
                if number % _TELL_EVERY == 0 or number == given.rounds:
                    _say(
                        f"{number} rounds: {race.seen.refused} refusals, {len(race.seen.wrong)} rounds with a wrong one"
                    )
            race.finish()
        over = max(place.node.status()[0].peak_bytes - one.limit, 0)
    seen = race.seen
    for each in seen.wrong:
        _say(f"WRONG {each}")
    told = {
        "soak": "calm",
        "rounds": seen.rounds,
        "operations": seen.operations,
        "refused": seen.refused,
        "refused_starts": seen.refused_starts,
        "wrong": len(seen.wrong),
        "bytes_over": over,
        "seconds": round(time.monotonic() - began_s),
    }
    _say(json.dumps(told))
    return _FAILED if seen.wrong or over or not seen.refused else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
