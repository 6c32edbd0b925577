"""The preload library on a node: built, given the names of the node's own driver, and put into a folder of its version.

    install(Path("/usr/local/lib/partage"), driver_root=Path("/"))

`elf` and `spares` are pure: bytes in, bytes out. `objects` compiles, `installation` writes; `current` says
which version new containers get.
"""

from __future__ import annotations

from partage_isolation.library.current import library_for_new
from partage_isolation.library.installation import Installed, install

__all__ = ["Installed", "install", "library_for_new"]
