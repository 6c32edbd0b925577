"""The command of the agent."""

from __future__ import annotations

import asyncio

from partage_base.daemon import logs
from partage_base.daemon.cli import daemon_command
from partage_oci.service import host_settings, start
from partage_oci.settings import AgentSettings
from partage_plugins.errors import PartageError
from partage_plugins.host import PluginHost


def mistakes(settings: AgentSettings) -> list[str]:
    """What is wrong, a line each. That the broker or the inventory is away is no mistake."""
    logs.configure("agent", level="warning", log_format="text")
    try:
        return asyncio.run(_faults(settings))
    except PartageError as error:
        return [str(error)]


async def _faults(settings: AgentSettings) -> list[str]:
    host = PluginHost(host_settings(settings))
    try:
        return list((await host.start()).faults)
    finally:
        await host.stop()


main = daemon_command(
    "agent",
    AgentSettings,
    start=start,
    about="Gives containers of Docker and Podman their shares of this machine's cards, for partage-oci.",
    check=mistakes,
)
