"""Removes all that `partage up` created, once no container has a share.

Our own folders are removed as a whole, a folder that others may use too only if it is empty.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_cli.machine.places import MACHINE_FILE, STATE
from partage_cli.machine.setup.errors import NotStarted, Unfit
from partage_isolation.wire.engines import killed, living

Say = Callable[[str], None]
_RUN: Final = "run/partage"
_SHOWN: Final = 12
_ENDED_WITHIN_S: Final = 10.0
_AGAIN_S: Final = 0.05


def end_containers(root: Path, *, kills: bool, say: Say) -> None:
    """Kill containers that have a share, while no daemon runs. Raises `Unfit` if there are any and not `kills`."""
    left = living(root)
    if left and not kills:
        names = " ".join(each.id[:_SHOWN] for each in left)
        raise Unfit(f"containers have shares that --purge would take away: {names}; add --all to kill them")
    for container in killed(root):
        say(f"container {container.id[:_SHOWN]} is killed")
    until = time.monotonic() + _ENDED_WITHIN_S
    while left := living(root):
        if time.monotonic() > until:
            raise NotStarted(f"container {left[0].id[:_SHOWN]} was killed and does not end; see `dmesg`")
        time.sleep(_AGAIN_S)


def remove_all(root: Path, say: Say) -> None:
    """Remove all; idempotent. Reports what is left, and why."""
    for name in (STATE, _RUN):
        if (root / name).exists():
            shutil.rmtree(root / name)
    (root / MACHINE_FILE).unlink(missing_ok=True)
    for each in (Path(MACHINE_FILE).parent, Path(STATE).parent):
        with contextlib.suppress(OSError):  # not empty, or missing
            (root / each).rmdir()
    if (root / "etc/partage").exists():
        say(f"left: {root / 'etc/partage'}, with settings that `partage up` did not make")
