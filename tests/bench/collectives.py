"""Cost of a collective that spins for its peers, if containers on two cards share these with others.

Two containers with 30 % of a card each train together: 3 ms of kernels, then a collective that stays on its card until
the other's is running. One of them has a flooding neighbour, the other two, so that their turns don't coincide by
chance. As a gang on one node they get their time slices together. Otherwise each has its own turns: this is the case
without a declared gang, and on two nodes, whose brokers don't know each other.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from bench.harness import Bench
from partage_isolation.library.objects import built
from support.isolated import Isolated, isolated
from support.sharing import Running, Sharer, start

SHARE: Final = 300
KERNELS: Final = 3
SECONDS: Final = 15.0
SMOKE_SECONDS: Final = 1.0
CARDS: Final = ("h100", "h100")
TIMES_TOGETHER: Final = 10
"""Relative to the rounds of peers without aligned time slices."""
PART_TOGETHER: Final = 0.8
"""Relative to their share of the rounds without neighbours."""


class Nodes(NamedTuple):
    """The peers' nodes; the first has card 0, the second card 1."""

    first: Isolated
    second: Isolated


def peers(nodes: Nodes, shared: Path, seconds: float, gang: str | None) -> list[tuple[Isolated, Sharer]]:
    words = ("--processes", "2", "--kernels", str(KERNELS), "--at", str(shared))
    return [
        (
            place,
            Sharer(
                f"peer-{rank}",
                SHARE,
                "collective",
                (*words, "--rank", str(rank)),
                seconds=seconds,
                card=rank,
                gang=gang,
            ),
        )
        for rank, place in enumerate(nodes)
    ]


def floods(nodes: Nodes) -> list[tuple[Isolated, Sharer]]:
    return [
        (nodes.first, Sharer("flood", 700, "flood")),
        (nodes.second, Sharer("flood-1", 350, "flood", card=1)),
        (nodes.second, Sharer("flood-2", 350, "flood", card=1)),
    ]


def rounds_a_second(nodes: Nodes, seconds: float, *, gang: str | None = None, is_alone: bool = False) -> float:
    """Collectives of the peers per second."""
    with ExitStack() as stack, tempfile.NamedTemporaryFile() as shared:

        def begin(place: Isolated, sharer: Sharer) -> Running:
            running = start(place, sharer)
            stack.callback(running.end)
            return running

        if not is_alone:
            for each in floods(nodes):
                begin(*each)
        running = [begin(*each) for each in peers(nodes, Path(shared.name), seconds, gang)]
        told = [each.lines()[0] for each in running]
    return min(float(each["rounds"]) / float(each["wall_seconds"]) for each in told)


def main() -> int:
    bench = Bench.from_argv("collectives", libraries=["uvloop", "msgspec"])
    seconds = SMOKE_SECONDS if bench.smoke else SECONDS
    with isolated(cards=CARDS, library=built()) as here, isolated(cards=CARDS, library=built()) as there:
        node, two = Nodes(here, here), Nodes(here, there)
        alone = bench.figure("without neighbours: collectives a second", rounds_a_second(node, seconds, is_alone=True))
        gang = bench.figure("a gang on one node: a second", rounds_a_second(node, seconds, gang="train"))
        undeclared = bench.figure("undeclared on one node: a second", rounds_a_second(node, seconds))
        apart = bench.figure("on two nodes: a second", rounds_a_second(two, seconds, gang="train"))
    bench.engaged("collectives were had", min(alone, gang) > 0)
    share = SHARE / 1000 * alone
    bench.bar("a gang on one node: of its share of those", gang / share, at_least=PART_TOGETHER, unit="of it")
    bench.bar(
        "a gang on one node: beside undeclared",
        gang / max(undeclared, 1 / seconds),
        at_least=TIMES_TOGETHER,
        unit="times",
    )
    bench.figure("on two nodes: of its share of those", apart / share)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
