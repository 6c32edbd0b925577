"""The files that request the advertiser to release the driver: one for each requester, containing the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_plugins.api.places import PAUSE_FOLDER

BY_HAND: Final = "by-hand"
_LONGEST_BYTES: Final = 1024


def said_pauses(root: Path) -> tuple[tuple[str, str], ...]:
    """Requesters and their reasons, sorted by name; unreadable files are skipped."""
    try:
        files = sorted((root / PAUSE_FOLDER).iterdir())
    except OSError:
        return ()
    return tuple((file.name, _first_line(file)) for file in files if not file.name.startswith("."))


def pause(root: Path, reason: str) -> None:
    """Request a pause by hand; a later call replaces the reason. Raises `OSError`."""
    folder = root / PAUSE_FOLDER
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_whole(folder / BY_HAND, f"{reason}\n".encode(), mode=0o644)


def resume(root: Path) -> bool:
    """Withdraw the pause made by hand. Returns whether there was one. Raises `OSError`."""
    try:
        (root / PAUSE_FOLDER / BY_HAND).unlink()
    except FileNotFoundError:
        return False
    return True


def _first_line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            text = opened.read(_LONGEST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    return text.partition("\n")[0].strip()
