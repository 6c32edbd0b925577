"""Builds the simulation from its C sources, once for each state of them.

In a checkout builds lie in `.cache/simgpu`; an installed package carries the sources and builds into the user's cache.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from partage_base.compilation import LOG, Compilation, cache_folder
from partage_simgpu.errors import NotBuilt

__all__ = ["LOG", "PRODUCTS", "READY_MADE", "built", "sources"]

PRODUCTS: Final = ("simgpud", "libcuda.so", "libnvidia-ml.so")
"""What every build has, besides the workloads."""
READY_MADE: Final = "PARTAGE_SIMGPU"
"""The environment may name a folder that is used instead of a build of ours, such as one with sanitizers."""
_PACKAGE: Final = Path(__file__).parent
_IN_CHECKOUT: Final = _PACKAGE.parent / "native"
_IN_PACKAGE: Final = _PACKAGE / "native"


def sources() -> Path:
    """The folder with the Makefile, the C files and the profiles."""
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _IN_PACKAGE


def built(*, into: Path | None = None) -> Path:
    """The folder of the programs and libraries; builds them first where this state of the sources is not built yet."""
    if ready_made := os.environ.get(READY_MADE):
        return Path(ready_made).resolve()
    return Compilation("the simulated GPU", sources(), into or _builds(), NotBuilt).built()


def _builds() -> Path:
    return cache_folder("simgpu", _IN_CHECKOUT.parents[1] if sources() == _IN_CHECKOUT else None)
