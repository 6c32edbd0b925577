"""Programs of one container allocate and free memory by every path; none dies, and none is refused with room.

    make soak-calm                       # 5,000 rounds, half an hour on a free machine
    tools/named soak calm --rounds 500 --seed 7

Half of the rounds crowd at the limit. In the others the total demand seldom exceeds the limit, so that memory that one
is refused has just been freed by another: most refusals then depend on the order of messages. Nothing is excused here,
as nothing is out of the broker's reach. Exit status: 0 done, 3 a refusal was wrong, or more was allocated than the
limit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.isolation.place import a_place
from bench.isolation.race import Race, Seen
from bench.memory import CARD, CONTEXT_MIB, RACED_MIB, raced
from soak.harness import ended, options, say

_PARTS: Final[Mapping[str, tuple[int, Mapping[str, Any]]]] = {
    "crowded": (RACED_MIB, {}),
    "at the edge": (1600, {"threads": 1, "operations": 40, "kinds": "plain,small,pitch,managed,mapped"}),
}
"""The limit in MiB, and the arguments that differ."""
_TELL_EVERY: Final = 500


def main() -> int:
    asked = options("calm", rounds=5000, seed=1)
    began_s = time.monotonic()
    parts = {name: _raced(name, asked.rounds // 2, asked.seed) for name in _PARTS}
    wrong = [f"{name}: {each}" for name, (_, found) in parts.items() for each in found]
    refused = {f"{name}: nothing was refused": seen.refused for name, (seen, _) in parts.items()}
    figures = {
        name: {"operations": seen.operations, "refused": seen.refused, "refused_starts": seen.refused_starts}
        for name, (seen, _) in parts.items()
    }
    seconds = round(time.monotonic() - began_s)
    return ended("calm", wrong, refused, rounds=asked.rounds, parts=figures, seconds=seconds)


def _raced(name: str, rounds: int, seed: int) -> tuple[Seen, list[str]]:
    """The results, and those that were wrong."""
    limit_mib, changes = _PARTS[name]
    with a_place(cards=(CARD,)) as place, tempfile.TemporaryDirectory() as folder:
        one = place.container(memory_mib=limit_mib)
        place.warm_up(one, CONTEXT_MIB, Path(folder))
        with Race(replace(raced(place, one), seed=seed, **changes), Path(folder) / "race") as race:
            for number in range(1, rounds + 1):
                race.round(is_calm=True)
                if number % _TELL_EVERY == 0 or number == rounds:
                    say(f"{name}, {number} rounds: {race.seen.refused} refusals, {len(race.seen.wrong)} wrong")
            race.finish()
        over = place.node.status()[0].peak_bytes - one.limit
    return race.seen, [*map(str, race.seen.wrong), *([f"{over} bytes beyond the limit"] if over > 0 else ())]


if __name__ == "__main__":
    raise SystemExit(main())
