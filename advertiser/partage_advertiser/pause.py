"""A driver upgrade that NVIDIA's operator announces by a label makes the plugin let go of the driver, by a file.

The file is there while the label says that work is under way. Another one, by hand, is none of our business.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_plugins.vocabulary.places import PAUSE_FOLDER

OURS: Final = "driver-upgrade"
LABEL: Final = "nvidia.com/gpu-driver-upgrade-state"
_QUIET: Final = frozenset(
    ("", "unknown", "upgrade-required", "validation-required", "uncordon-required", "upgrade-done")
)
"""Nothing is done to the driver yet, or any more; in every other state those who hold it go, or it does itself."""


def why_paused(labels: Mapping[str, str]) -> str | None:
    """What to tell people; None: go on."""
    return None if labels.get(LABEL, "") in _QUIET else "the GPU operator upgrades the driver"


class PauseFile:
    """Ours, below the node's root."""

    def __init__(self, root: Path) -> None:
        self._path = root / PAUSE_FOLDER / OURS

    def say(self, why: str | None) -> bool:
        """Makes it say so, or not be there; whether that is new."""
        if why == self._said():
            return False
        if why is None:
            self._path.unlink(missing_ok=True)
            return True
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(self._path, f"{why}\n".encode(), mode=0o644)
        return True

    def _said(self) -> str | None:
        try:
            return self._path.read_text().strip()
        except FileNotFoundError:
            return None
