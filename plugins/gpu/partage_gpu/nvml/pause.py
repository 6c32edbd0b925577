"""Reads whether the driver is to be released, and why: while there is a file in the folder of pauses."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_plugins.api.places import PAUSE_FOLDER

_LONGEST_BYTES: Final = 1024


class Pauses:
    def __init__(self, root: Path) -> None:
        self._folder = root / PAUSE_FOLDER
        self._last: str | None = None

    def reason(self) -> str | None:
        """None: not paused. Of several reasons the first by name; if the folder can't be read, the previous result."""
        try:
            files = sorted(file for file in self._folder.iterdir() if not file.name.startswith("."))
        except FileNotFoundError:
            files = []
        except OSError:
            return self._last
        self._last = next(filter(None, map(_said, files)), None)
        return self._last


def _said(file: Path) -> str | None:
    """The file's first line, or its name if that is empty; None: it was removed meanwhile."""
    try:
        with file.open("rb") as opened:
            text = opened.read(_LONGEST_BYTES)
    except FileNotFoundError:
        return None
    except OSError:
        return file.name
    return text.decode(errors="replace").partition("\n")[0].strip() or file.name
