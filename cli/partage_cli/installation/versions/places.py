"""Where a change of versions leaves its files on a node, below its root and without the first slash."""

from __future__ import annotations

from typing import Final

from partage_cli.installation.places import STATE, TREES

VERSION_BACK: Final = f"{STATE}/version-back"
"""A script that puts the version before in force again; there while a new one is on trial. The units name it too."""
LINK_BACK: Final = f"{TREES}/.before"
"""The link to that version, ready to be renamed."""
WENT_BACK: Final = f"{STATE}/went-back"
"""One line that the script left."""
FAILURES: Final = "run/partage/trial"
"""When daemons on trial have failed, a file for each."""


def kept_unit(unit: str) -> str:
    """Where the unit of the version before waits, beside its place; systemd does not read such names."""
    return f".{unit}.before"
