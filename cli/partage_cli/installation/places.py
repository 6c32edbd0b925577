"""Paths of an installation on a node, relative to its root."""

from __future__ import annotations

from typing import Final

TREES: Final = "opt/partage"
"""A folder for each version."""
CURRENT: Final = f"{TREES}/current"
"""A link to the version in force; every configured path on a host goes through it."""

STATE: Final = "var/lib/partage/node"
JOURNAL: Final = f"{STATE}/journal.json"
LOCK: Final = f"{STATE}/lock"
SAVED: Final = f"{STATE}/saved"
"""Copies of the files that set kubelet's runtime endpoint."""
TURN: Final = f"{STATE}/switch"
"""A folder with one file, whose name is the state of the switch."""
WAY_BACK: Final = f"{STATE}/switch-back"
"""A script that needs no code of ours."""

VERSION_BACK: Final = f"{STATE}/version-back"
"""A script like that, for versions; exists while one is on trial. The units refer to it."""
WENT_BACK: Final = f"{STATE}/went-back"
"""Its one-line message."""

UNITS: Final = "etc/systemd/system"
SERVICES: Final = "etc/partage/services.json"
"""The service manager, if it is not systemd."""
