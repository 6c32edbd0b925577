"""Copies what `tools/real` needs built to a folder, for a machine without a compiler: `real_card.carry FOLDER`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import built as built_library
from partage_isolation.library.pages import built_page
from partage_simgpu.build import built as built_simulation
from real_card.ground import built_programs

_NOT_CARRIED: Final = shutil.ignore_patterns("objects", "log", "lock")


def main() -> int:
    folder = Path(sys.argv[1])
    for name, built in (("preload", built_library), ("simgpu", built_simulation), ("programs", built_programs)):
        shutil.copytree(built(), folder / name, ignore=_NOT_CARRIED, dirs_exist_ok=True)
    shutil.copy(built_page(), folder / "preload")
    return 0


if __name__ == "__main__":
    sys.exit(main())
