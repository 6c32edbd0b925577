"""The command line of the manager: flags become settings, settings a service; `--check` looks without starting."""

from __future__ import annotations

import grp
from collections.abc import Iterator

import uvloop

from partage_base.daemon.cli import daemon_command
from partage_base.keyring import KeyringError, load_signing_key
from partage_cli.machine.manager.service import start
from partage_cli.machine.manager.settings import ManagerSettings


def mistakes(settings: ManagerSettings) -> list[str]:
    """What is wrong, a line each. That the runtime is away is no mistake: it may come later."""
    return list(_mistakes(settings))


def _mistakes(settings: ManagerSettings) -> Iterator[str]:
    try:
        load_signing_key(settings.below_root(settings.signing_keys))
    except KeyringError as error:
        yield f"{error}; `partage up` makes a key"
    if settings.group:
        try:
            grp.getgrnam(settings.group)
        except KeyError:
            yield f"group is {settings.group}, which is no group of this machine; `groupadd` makes it"


main = daemon_command(
    "manager",
    ManagerSettings,
    start=start,
    about="Runs pods on a machine without Kubernetes.",
    check=mistakes,
    loop_factory=uvloop.new_event_loop,
)
