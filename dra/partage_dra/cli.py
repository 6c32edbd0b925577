"""The command of the DRA driver."""

from __future__ import annotations

import asyncio

from partage_base.daemon import logs
from partage_base.daemon.api_server import server_for
from partage_base.daemon.cli import daemon_command
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.plugin_host import host_settings, started_once
from partage_dra.service import start
from partage_dra.settings import DraSettings
from partage_plugins.errors import PartageError


def mistakes(settings: DraSettings) -> list[str]:
    """Configuration mistakes, one line each.

    An absent kubelet, broker or API server is not a mistake.
    """
    logs.configure("dra", level="warning", log_format="text")
    try:
        return asyncio.run(_mistakes(settings))
    except BadConfiguration as error:
        return list(error.mistakes)
    except PartageError as error:
        return [str(error)]


async def _mistakes(settings: DraSettings) -> list[str]:
    async with await server_for("dra", settings.kubeconfig):
        return list((await started_once(host_settings(settings, "dra", host=settings.host))).faults)


main = daemon_command(
    "dra",
    DraSettings,
    start=start,
    about="Publishes this node's cards of the pool dra to Kubernetes, and prepares claims on them for kubelet.",
    check=mistakes,
)
