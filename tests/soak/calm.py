"""Programs of one container take and give back memory by every path, and none dies: none is refused with room.

    make soak-calm                       # 5,000 rounds, half an hour on a free machine
    tools/named soak calm --rounds 500 --seed 7

Half of the rounds crowd at the limit. In the others all together seldom want more than there is, so that what one is
refused another has just given back: most refusals are then a matter of who was heard when. Nothing is excused here, as
nothing is out of the broker's reach. Exit status: 0 done, 3 a refusal was wrong, or more was taken than the limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.isolation.place import a_place
from bench.isolation.race import Race
from bench.memory import CARD, RACED_MIB, raced, warm_up

_PARTS: Final[Mapping[str, tuple[int, Mapping[str, Any]]]] = {
    "crowded": (RACED_MIB, {}),
    "at the edge": (1600, {"threads": 1, "operations": 40, "kinds": "plain,small,pitch,managed,mapped"}),
}
"""The limit in MiB, and what is another way in its course."""
_TELL_EVERY: Final = 500
_FAILED: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak calm", description="programs race for memory, and none dies")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began_s = time.monotonic()
    parts = {name: _raced(name, given.rounds // 2, given.seed) for name in _PARTS}
    told = {"soak": "calm", "rounds": given.rounds, "parts": parts, "seconds": round(time.monotonic() - began_s)}
    _say(json.dumps(told))
    is_right = all(each["refused"] and not each["wrong"] and not each["bytes_over"] for each in parts.values())
    return 0 if is_right else _FAILED


def _raced(name: str, rounds: int, seed: int) -> dict[str, int]:
    limit_mib, changes = _PARTS[name]
    with a_place(cards=(CARD,)) as place, tempfile.TemporaryDirectory() as folder:
        one = place.container(memory_mib=limit_mib)
        warm_up(place, one, Path(folder))
        with Race(replace(raced(place, one), seed=seed, **changes), Path(folder) / "race") as race:
            for number in range(1, rounds + 1):
                race.round(is_calm=True)
                if number % _TELL_EVERY == 0 or number == rounds:
                    _say(f"{name}, {number} rounds: {race.seen.refused} refusals, {len(race.seen.wrong)} wrong")
            race.finish()
        over = max(place.node.status()[0].peak_bytes - one.limit, 0)
    for each in race.seen.wrong:
        _say(f"WRONG {name}: {each}")
    return {
        "operations": race.seen.operations,
        "refused": race.seen.refused,
        "refused_starts": race.seen.refused_starts,
        "wrong": len(race.seen.wrong),
        "bytes_over": over,
    }


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
