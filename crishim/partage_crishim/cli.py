"""The command line of crishim: flags become settings, which start the daemon or, with `--check`, are validated."""

from __future__ import annotations

import asyncio

import uvloop

from partage_base.daemon.cli import daemon_command
from partage_base.daemon.plugin_host import host_settings, started_once
from partage_base.keyring import load_public_keys
from partage_crishim.service import start
from partage_crishim.settings import CrishimSettings
from partage_plugins.errors import PartageError


def mistakes(settings: CrishimSettings) -> list[str]:
    """Configuration mistakes, one line each.

    An absent runtime or kubelet is not a mistake, since either may start later.
    """
    loaded = load_public_keys(settings.below_root(settings.keys))
    wrong = [str(fault) for fault in loaded.faults]
    if not loaded.keys and not wrong:
        wrong.append(f"{settings.keys} holds no key, so no allocation would be believed; see docs/keys.md")
    try:
        started = asyncio.run(started_once(host_settings(settings, "crishim")))
    except PartageError as error:
        return [*wrong, str(error)]
    unknown = [f"plugin {name} is blocked and not installed" for name in started.unknown_blocked]
    return [*wrong, *started.faults, *unknown]


main = daemon_command(
    "crishim",
    CrishimSettings,
    start=start,
    about="Stands between kubelet and the container runtime: starts a container with its allocation, or says why not.",
    check=mistakes,
    loop_factory=uvloop.new_event_loop,
    takes_over=True,
    lives_always=True,
)
