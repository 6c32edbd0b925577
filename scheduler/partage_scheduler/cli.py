"""Command line of the scheduler: turns flags into settings, and settings into a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import uvloop

from partage_base.daemon.cli import daemon_command
from partage_base.daemon.errors import BadConfiguration
from partage_base.keyring import load_public_keys
from partage_base.kube import Access, BadAccess
from partage_scheduler.assembly import signer_of
from partage_scheduler.core import new_core, plugins
from partage_scheduler.dry_run import INSTEAD
from partage_scheduler.service import start
from partage_scheduler.settings import SchedulerSettings


def mistakes(settings: SchedulerSettings) -> list[str]:
    """Configuration errors, one per line. An unreachable API server is not an error: it may start later."""
    return [*_of_keys(settings), *_of(lambda: new_core(settings, plugins())), *_of_access(settings)]


def _of_keys(settings: SchedulerSettings) -> Iterator[str]:
    yield from _of(lambda: signer_of(settings))
    loaded = load_public_keys(settings.below_root(settings.keys))
    yield from map(str, loaded.faults)
    try:
        signing = signer_of(settings).key.id
    except BadConfiguration:
        return
    if signing not in loaded.keys:
        yield f"{settings.keys} does not hold the public half of key {signing}, which signs; copy it there"


def _of(make: Callable[[], object]) -> Iterator[str]:
    try:
        make()
    except BadConfiguration as error:
        yield from error.mistakes


def _of_access(settings: SchedulerSettings) -> Iterator[str]:
    try:
        Access.find(settings.kubeconfig)
    except BadAccess as error:
        yield str(error)


main = daemon_command(
    "scheduler",
    SchedulerSettings,
    start=start,
    about="Places pods on nodes and their containers on shares of cards.",
    check=mistakes,
    loop_factory=uvloop.new_event_loop,
    instead=INSTEAD,
)
