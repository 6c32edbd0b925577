"""The three objects of the preload library: prebuilt, or compiled from the C sources.

An installed package may contain objects for its machine (tools/release); otherwise they are compiled, once for each
state of the sources, in a checkout into `.cache/preload`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from partage_base.compilation import Compilation, cache_folder
from partage_isolation.library.errors import NotBuilt

CUDA: Final = "libcuda.so.1"
ALIAS: Final = "libcuda.so"
NVML: Final = "libnvidia-ml.so.1"
OBJECTS: Final = (CUDA, ALIAS, NVML)
"""In the order in which a process loads them."""
READY_MADE: Final = "PARTAGE_PRELOAD"
"""Environment variable with a folder to use instead of a build of ours, such as one of `make release`."""
_PACKAGE: Final = Path(__file__).parent
CHECKOUT: Final = _PACKAGE.parents[2]
_IN_CHECKOUT: Final = CHECKOUT / "isolation/preload"
CARRIED: Final = _PACKAGE / "objects"
_NOT_BUILT: Final = frozenset(("tests",))


def sources() -> Path:
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _PACKAGE / "preload"


def built(*, into: Path | None = None) -> Path:
    """The folder of the three objects, for this machine."""
    if ready_made := os.environ.get(READY_MADE):
        return Path(ready_made).resolve()
    checkout = CHECKOUT if sources() == _IN_CHECKOUT else None
    carried = CARRIED / os.uname().machine
    if checkout is None and carried.is_dir():
        return carried
    builds = into or cache_folder("preload", checkout)
    driver = CHECKOUT / "isolation/driver" if checkout else _PACKAGE.with_name("driver")
    return Compilation(
        "the preload library", sources(), builds, NotBuilt, _NOT_BUILT, (driver,), is_shared=checkout is not None
    ).built()
