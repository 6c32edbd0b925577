"""Small things that the broker keeps in files of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_isolation.errors import NoRows

STATE: Final = "run/partage/state"
ROWS: Final = f"{STATE}/rows"
_SIZES: Final = f"{STATE}/contexts.json"
LOCK: Final = f"{STATE}/lock"
LOCK_WITHIN_S: Final = 10.0


def make_state_folder(root: Path) -> None:
    """For root alone; raises `NoRows`."""
    folder = root / STATE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise NoRows(f"cannot keep the books in {folder}: {error.strerror}") from error


def read_sizes(root: Path) -> Mapping[str, int]:
    """What contexts take, by model; nothing where that was never learned."""
    try:
        return msgspec.json.decode((root / _SIZES).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.MsgspecError):
        return {}


def write_sizes(root: Path, sizes: Mapping[str, int]) -> None:
    """Raises `OSError`."""
    write_whole(root / _SIZES, msgspec.json.encode(sizes))
