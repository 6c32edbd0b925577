"""Builds the simulation from its C sources, once for each state of them.

In a checkout builds lie in `.cache/simgpu`, and are taken from the user's cache where another checkout has the same;
an installed package carries the sources and builds into the user's cache.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from partage_base.compilation import LOG, Compilation, cache_folder
from partage_simgpu.errors import NotBuilt

__all__ = ["LOG", "PRODUCTS", "READY_MADE", "WORKLOADS", "built", "sources"]

PRODUCTS: Final = ("simgpud", "libcuda.so", "libnvidia-ml.so")
"""What every build has, besides the workloads."""
READY_MADE: Final = "PARTAGE_SIMGPU"
"""The environment may name a folder that is used instead of a build of ours, such as one with sanitizers."""
WORKLOADS: Final[Mapping[str, str]] = {
    "allocate": "takes memory of every kind and tells what each took from the card",
    "collective": "launches kernels, and meets its peers on other cards after every few",
    "flood": "launches kernels without ever waiting",
    "graph-replay": "launches a graph of kernels again and again",
    "inference": "answers requests that come at a rate, and tells how long they took",
    "launch-cost": "measures what a launch costs its thread",
    "launch-wait": "launches one kernel at a time and waits for it",
    "mixed": "launches kernels of 10 us, 1 ms and 30 ms without ever waiting",
    "several": "floods a card from several processes at once",
}
"""The small programs that use a card, in the words of their own --help: each is a C file in `native/workloads`."""
_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parents[1]
_IN_CHECKOUT: Final = _CHECKOUT / "simgpu/native"
_IN_PACKAGE: Final = _PACKAGE / "native"


def sources() -> Path:
    """The folder with the Makefile, the C files and the profiles."""
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _IN_PACKAGE


def built(*, into: Path | None = None) -> Path:
    """The folder of the programs and libraries; builds them first where this state of the sources is not built yet."""
    if ready_made := os.environ.get(READY_MADE):
        return Path(ready_made).resolve()
    in_checkout = sources() == _IN_CHECKOUT
    builds = into or cache_folder("simgpu", _CHECKOUT if in_checkout else None)
    driver = _CHECKOUT / "isolation/driver" if in_checkout else _PACKAGE.with_name("partage_isolation") / "driver"
    return Compilation(
        "the simulated GPU",
        sources(),
        builds,
        NotBuilt,
        beside=(driver,),
        variables=("ABOVE_DRIVER=..",),
        is_shared=in_checkout,
    ).built()
