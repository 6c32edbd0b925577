"""Whether a flood gets exactly its share by each known way around a time slice.

A container with 10 % of a simulated card floods it by that way, beside an ordinary flood with 90 %. The parts of ten
seconds are the card's own account. Its program reports whether the way was really taken (`ways.c` of the library's
programs); its time slices and the memory that it sees show that it is metered all the same.

Contexts of OpenGL and VDPAU, and those of the driver's own tables, can't be created on a simulated card: the library
treats them like `past`. Nodes of a graph that are changed one by one use hooks that do what that of `updated` does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from bench.harness import Bench
from bench.isolation.programs import programs
from bench.sharing.cases import FLOOD, Case, sharer
from bench.sharing.place import OURS, Place
from partage_isolation.library.objects import built
from support.isolated import Isolated, isolated
from support.sharing import MEMORY, Running, Sharer
from support.simgpu import driver_past

SECONDS: Final = 10
SMOKE_SECONDS: Final = 1
OFF: Final = 0.02
SHARE, REST = 100, 900
WAYS: Final[Mapping[str, str]] = {
    "ordinary": "nothing of the kind",
    "path": "the driver opened by an absolute path",
    "past": "a context made past the hooks",
    "open": "an open capture in another stream",
    "leaked": "a stream destroyed while it captured",
    "blocking": "CUDA_LAUNCH_BLOCKING",
    "green": "green contexts destroyed with a busy stream",
    "updated": "a graph that becomes longer",
}


def around(isolation: Isolated, way: str) -> Case:
    driver = isolation.node.library("cuda") if way == "path" else driver_past(isolation.node)
    hostile = Sharer(way, SHARE, str(programs() / "ways"), (way, str(driver)))
    return Case(WAYS[way], (hostile, sharer(FLOOD, REST)), (FLOOD, FLOOD), (SHARE / 1000, REST / 1000))


def had(bench: Bench, place: Place, case: Case) -> float:
    """The bypassing program's part of the card."""

    def look(running: Sequence[Running]) -> None:
        said = running[0].said()
        bench.engaged(f"{case.name}: the way was taken", said["taken"])
        bench.engaged(f"{case.name}: the program sees its limit", said["total"] == MEMORY)

    seen = place.run(case, SMOKE_SECONDS if bench.smoke else SECONDS, look)
    sys.stderr.write(f"{case.name}: {seen.shown()}\n")
    return seen.shares[0]


def main() -> int:
    bench = Bench.from_argv("ways", libraries=["uvloop", "msgspec"])
    with isolated(cards=("h100",), library=built()) as isolation:
        place = Place(bench, OURS, isolation)
        for way in WAYS:
            case = around(isolation, way)
            got = bench.figure(f"{case.name}: of the card", had(bench, place, case))
            off = abs(got - SHARE / 1000)
            bench.bar(f"{case.name}: away from its share", off, at_most=OFF, unit="of the card")
    bench.figure("runs that others disturbed", len(place.disturbed))
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
