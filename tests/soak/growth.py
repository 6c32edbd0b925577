"""Containers near their limit grow by local memory, code and graphs: they are refused, and never stopped.

    make soak-growth                     # 100 seeds, some minutes
    tools/named soak growth --seeds 1000 --first 7

Exit status: 0 done, 3 one held too much, was shown more than there is, or would have been stopped.
"""

from __future__ import annotations

import time
from typing import Final

from isolation.memory.growing import Seen, a_place, grow
from soak.harness import ended, options, say

_KINDS: Final = ("locals", "module", "graph")


def main() -> int:
    asked = options("growth", seeds=100, first=0)
    began_s = time.monotonic()
    seen = Seen()
    with a_place() as place:
        for seen in grow(place, range(asked.first, asked.first + asked.seeds)):
            say(f"{sum(seen.done.values())} done, {sum(seen.refused.values())} refused, {len(seen.wrong)} wrong")
    tried = {
        f"{kind} was never both done and refused": seen.done.get(kind) and seen.refused.get(kind) for kind in _KINDS
    }
    over_mib, seconds = round(seen.most_over / (1 << 20), 1), round(time.monotonic() - began_s)
    return ended("growth", seen.wrong, tried, done=seen.done, refused=seen.refused, over_mib=over_mib, seconds=seconds)


if __name__ == "__main__":
    raise SystemExit(main())
