"""The decision of `partage up`, stored so that a second `up`, `down` and the services agree on it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from partage_base.files import write_whole
from partage_cli.machine.places import MACHINE_FILE
from partage_cli.machine.setup.errors import Earlier, NotReadable

SIMULATED: Final = "SIMULATED CARDS: nothing is computed on them"
"""Shown by every command on such a machine."""
MOST_SIMULATED: Final = 32
"""Most cards of a simulated node."""
_MOST_BYTES: Final = 64 << 10
_HEAD: Final = "# Written by `partage up`. `partage down --purge` removes it and all that it names.\n"


class Decision(Struct, frozen=True, kw_only=True):
    v: Literal[2] = 2
    simulated: str = ""
    """Model of the simulated cards; empty if the cards are real."""
    cards: int = 0
    """Number of simulated cards."""


class _Version(Struct, frozen=True):
    v: int


def read_decision(root: Path) -> Decision | None:
    """The stored decision, or None; raises `NotReadable` and `Earlier`."""
    path = root / MACHINE_FILE
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise NotReadable(f"{path} is longer than {_MOST_BYTES} bytes; remove it, then `partage up` again")
        if msgspec.toml.decode(text, type=_Version).v == 1:
            raise Earlier(
                f"{path} is of a partage that ran containers itself; end them with that version: "
                "`partage down --all --purge`, then `partage up` with this one"
            )
        return msgspec.toml.decode(text, type=Decision)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotReadable(f"{path}: {error}; mend it, or remove it and `partage up` again") from None


def is_simulated(root: Path) -> bool:
    """Whether this machine's cards are simulated by `partage up`; raises `NotReadable` and `Earlier`."""
    decision = read_decision(root)
    return decision is not None and bool(decision.simulated)


def write_decision(root: Path, decision: Decision) -> None:
    path = root / MACHINE_FILE
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    text = f'v = {decision.v}\nsimulated = "{decision.simulated}"\ncards = {decision.cards}\n'
    write_whole(path, (_HEAD + text).encode(), mode=0o644, synced=True)
