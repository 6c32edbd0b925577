"""`partage-broker --check`: what a start would rely on, looked at without starting."""

from __future__ import annotations

import os
from collections.abc import Iterator

from partage_isolation.library.current import library_for_new
from partage_isolation.library.pages import line_writer
from partage_isolation.settings import BrokerSettings
from partage_plugins.errors import PartageError


def mistakes(settings: BrokerSettings) -> list[str]:
    """What is wrong, a line each. That the runtime or the driver is away is no mistake: they may come later."""
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
