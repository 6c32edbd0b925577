"""Builds the simulation from its C sources, once for each version of them.

In a checkout builds are in `.cache/simgpu`, and reused from the user's cache if another checkout has built the same
sources; an installed package includes the sources and builds into the user's cache.
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
"""Files of every build, besides the workloads."""
READY_MADE: Final = "PARTAGE_SIMGPU"
"""Environment variable with a folder to use instead of building, such as a build with sanitizers."""
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
"""Small programs that use a card, with the summaries of their --help; each is a C file in `native/workloads`."""
_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parents[1]
_IN_CHECKOUT: Final = _CHECKOUT / "simgpu/native"
_IN_PACKAGE: Final = _PACKAGE / "native"


def sources() -> Path:
    """Returns the folder with the Makefile, the C files and the profiles."""
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _IN_PACKAGE


def built(*, into: Path | None = None) -> Path:
    """Returns the folder of the programs and libraries, after building them if these sources are not built yet."""
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
