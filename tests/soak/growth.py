"""Containers near their limit grow by local memory, code and graphs: they are refused, and never stopped.

    make soak-growth                     # 100 seeds, some minutes
    tools/named soak growth --seeds 1000 --first 7

Exit status: 0 done, 3 one held too much, was shown what is not there, or would have been stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Final

from isolation.memory.growing import Seen, a_place, grow

_FAILED: Final = 3
_KINDS: Final = ("locals", "module", "graph")


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak growth", description="containers grow, and none is stopped")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    began_s = time.monotonic()
    seen = Seen()
    with a_place() as place:
        for seen in grow(place, range(given.first, given.first + given.seeds)):
            _say(f"{sum(seen.done.values())} done, {sum(seen.refused.values())} refused, {len(seen.wrong)} wrong")
    for each in seen.wrong:
        _say(f"WRONG {each}")
    idle = [kind for kind in _KINDS if not (seen.done.get(kind) and seen.refused.get(kind))]
    told = {
        "soak": "growth",
        "seeds": given.seeds,
        "done": seen.done,
        "refused": seen.refused,
        "not_tried": idle,
        "most_over_mib": round(seen.most_over / (1 << 20), 1),
        "wrong": len(seen.wrong),
        "seconds": round(time.monotonic() - began_s),
    }
    _say(json.dumps(told))
    return _FAILED if seen.wrong or idle else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
