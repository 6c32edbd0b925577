"""The command line of the page: flags become settings, settings a service."""

from __future__ import annotations

from partage_base.daemon.cli import daemon_command
from partage_ui.service import start
from partage_ui.settings import UiSettings

main = daemon_command(
    "ui",
    UiSettings,
    start=start,
    about="Serves a page of what waits, who got what, and which cards are held and unused.",
)
