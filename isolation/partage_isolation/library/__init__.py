"""The preload library on a node: built, with the exports of the node's driver, in a folder of its version.

    install(Path("/usr/local/lib/partage"), driver_root=Path("/"))

`elf` and `exports` are pure: bytes in, bytes out. `objects` compiles, `installation` writes; `current` selects the
version that new containers get.
"""

from __future__ import annotations

from partage_isolation.library.current import library_for_new
from partage_isolation.library.installation import Installed, install

__all__ = ["Installed", "install", "library_for_new"]
