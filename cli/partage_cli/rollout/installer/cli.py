"""The command of the installer: flags become settings, settings a service."""

from __future__ import annotations

from partage_base.daemon.cli import daemon_command
from partage_cli.rollout.installer.service import start
from partage_cli.rollout.installer.settings import InstallerSettings

main = daemon_command(
    "installer",
    InstallerSettings,
    start=start,
    about="Brings its node into force when it is the node's turn, and keeps it at this version.",
)
