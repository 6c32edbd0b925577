"""The command of the agent."""

from __future__ import annotations

import asyncio

from partage_base.daemon import logs
from partage_base.daemon.cli import daemon_command
from partage_base.daemon.plugin_host import host_settings, started_once
from partage_oci.service import start
from partage_oci.settings import AgentSettings
from partage_plugins.errors import PartageError


def mistakes(settings: AgentSettings) -> list[str]:
    """Configuration mistakes, one line each.

    An absent broker or inventory is not a mistake.
    """
    logs.configure("agent", level="warning", log_format="text")
    try:
        return list(asyncio.run(started_once(host_settings(settings, "oci"))).faults)
    except PartageError as error:
        return [str(error)]


main = daemon_command(
    "agent",
    AgentSettings,
    start=start,
    about="Gives containers of Docker and Podman their shares of this machine's cards, for partage-oci.",
    check=mistakes,
)
