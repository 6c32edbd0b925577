"""The command line of the broker: flags become settings, settings a service."""

from __future__ import annotations

import click
import uvloop

from partage_base.daemon.cli import Instead, daemon_command
from partage_isolation.broker.checking import mistakes
from partage_isolation.library.installation import install
from partage_isolation.library.pages import install_page
from partage_isolation.service import start
from partage_isolation.settings import BrokerSettings


def _install(settings: BrokerSettings, _: frozenset[str]) -> int:
    """What new containers get from now on; running ones keep theirs."""
    folder, driver = map(settings.below_root, (settings.library_folder, settings.driver_root))
    installed = install(folder, driver)
    install_page(folder)
    click.echo(f"{installed.folder}")
    for name in installed.left_out:
        click.echo(f"partage-broker: programs that need {name} do not find it: no spare export is left", err=True)
    return 0


main = daemon_command(
    "broker",
    BrokerSettings,
    start=start,
    about="Lends memory of cards to containers and keeps each within its limit.",
    check=mistakes,
    loop_factory=uvloop.new_event_loop,
    instead=Instead(
        flags={"install-library": "Install the preload library for this node's driver, print its folder, then exit."},
        words=(),
        do=_install,
    ),
)
