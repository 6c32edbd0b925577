"""The state of this node's switch: the name of one file. The process that renames it first wins.

    armed          kubelet is being pointed to crishim; the rollback starts when the time has run out
    confirmed      kubelet speaks through crishim, the node is ready and a pod has started
    turning-back   the rollback is running
    turned-back    kubelet has its former configuration

A rename needs no disk space, is atomic, and can be done by a shell. So the rollback needs no code of ours, and a
confirmation that comes too late finds the file gone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal, get_args

from partage_base.files import sync_folder, write_whole
from partage_cli.doctor.local_node import Unseen, names_in, text_of
from partage_cli.installation.places import TURN

State = Literal["armed", "confirmed", "turning-back", "turned-back"]
_STATES: Final[tuple[State, ...]] = get_args(State)


def state(root: Path) -> State | None:
    """None: this node was never switched, or was switched off."""
    names = names_in(root / TURN)
    return None if isinstance(names, Unseen) else next((each for each in _STATES if each in names), None)


def armed_until(root: Path) -> str:
    """When the rollback starts, for people; empty if the switch is not armed."""
    text = text_of(root / TURN / "armed")
    return "" if isinstance(text, Unseen) else text.strip()


def arm(root: Path, until: str) -> None:
    clear(root)
    write_whole(root / TURN / "armed", f"{until}\n".encode(), synced=True)


def confirm(root: Path) -> bool:
    """Returns False if the rollback has begun."""
    try:
        os.rename(root / TURN / "armed", root / TURN / "confirmed")  # noqa: PTH104  a link's target is not followed
    except FileNotFoundError:
        return False
    sync_folder(root / TURN)
    return True


def clear(root: Path) -> None:
    folder = root / TURN
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _STATES:
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)
