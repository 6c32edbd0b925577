"""A process with a plugin host, for tests that kill it: prints its child's PID and waits."""

from __future__ import annotations

import asyncio
import sys

from partage_plugins.api import NodeName
from partage_plugins.host import HostSettings, PluginHost
from support.sides import container, granted_raw


async def main() -> None:
    paths = {"obedient": "support.host_plugins:Obedient"}
    host = PluginHost(HostSettings(node=NodeName("n1"), root=sys.argv[1], paths=paths))
    adjusted = await host.adjust(container(), granted_raw("t0"))
    print(adjusted.adjustment.env["PID"], flush=True)  # noqa: T201  the test reads it
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
