"""The broker's command line: flags become settings, settings a service; `--check` validates without starting."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
import uvloop

from partage_base.daemon.cli import Instead, daemon_command
from partage_isolation.library.current import library_for_new
from partage_isolation.library.installation import install
from partage_isolation.library.pages import install_page, line_writer
from partage_isolation.service import start
from partage_isolation.settings import BrokerSettings
from partage_plugins.errors import PartageError


def mistakes(settings: BrokerSettings) -> list[str]:
    """Errors, one line each. An absent runtime or driver is not an error: they may come later."""
    return [*_of_root(settings), *_of_library(settings)]


def _of_root(settings: BrokerSettings) -> Iterator[str]:
    if not settings.root.is_dir():
        yield f"root is {settings.root}, which is no folder"
    elif not os.access(settings.root, os.W_OK):
        yield f"root is {settings.root}, which can't be written; run as root"


def _of_library(settings: BrokerSettings) -> Iterator[str]:
    folder = settings.below_root(settings.library_folder)
    for needed in (library_for_new, line_writer):
        try:
            needed(folder)
        except PartageError as error:
            yield str(error)


def _install(settings: BrokerSettings, _: frozenset[str]) -> int:
    """Install the library for new containers; running ones keep theirs."""
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
