"""Where an installation lies on a node, below its root and without the first slash."""

from __future__ import annotations

from typing import Final

TREES: Final = "opt/partage"
"""A folder for each version."""
CURRENT: Final = f"{TREES}/current"
"""A link to the version in force; all that a host has configured names it."""

STATE: Final = "var/lib/partage/node"
JOURNAL: Final = f"{STATE}/journal.json"
LOCK: Final = f"{STATE}/lock"
SAVED: Final = f"{STATE}/saved"
"""What stood in the files that say where kubelet's runtime is."""
TURN: Final = f"{STATE}/switch"
"""One file, whose name says how the switch stands."""
WAY_BACK: Final = f"{STATE}/switch-back"
"""A script that needs nothing of ours."""

UNITS: Final = "etc/systemd/system"
SERVICES: Final = "etc/partage/services.json"
"""Who keeps the services where that is not systemd."""
