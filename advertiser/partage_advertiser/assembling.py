"""Puts an advertiser together from its settings: who is asked, and where on the node that lies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from partage_advertiser.inspection import Inspector
from partage_advertiser.kubelet import Kubelet
from partage_advertiser.plugins import started_side
from partage_advertiser.pods import Pods
from partage_advertiser.readiness import Readiness
from partage_advertiser.settings import AdvertiserSettings
from partage_base.cri import PodResources, UnaryClient
from partage_base.daemon.errors import BadConfiguration
from partage_base.kube import Access, ApiServer, BadAccess
from partage_base.version import VERSION
from partage_plugins.registry.calls import Activity
from partage_plugins.registry.watchdog import Watchdog


async def api_server(settings: AdvertiserSettings) -> ApiServer:
    """As whom this node speaks; `BadConfiguration` where nobody says."""
    try:
        access = await asyncio.to_thread(Access.find, settings.kubeconfig)
    except BadAccess as error:
        raise BadConfiguration(str(error)) from None
    return ApiServer(access, user_agent=f"partage-advertiser/{VERSION}")


class NodeView:
    """What looks at the node: plugins and kubelet, watched for hangs."""

    def __init__(self, settings: AdvertiserSettings, server: ApiServer | None, *, wake: Callable[[], None]) -> None:
        side = started_side(settings, wake=wake)
        self._kubelet = UnaryClient(settings.below_root(settings.pod_resources))
        self.readiness = Readiness(settings.root, within_s=settings.ready_within_s)
        kubelet = Kubelet(PodResources(self._kubelet), settings.root)
        self.looker = Inspector(side, kubelet, Pods(server), self.readiness)
        self._watchdog = _watchdog(side.activity, settings)

    async def close(self) -> None:
        """Plugins let go; nothing is left behind."""
        try:
            faults = await self.looker.stop()
        finally:
            self._watchdog.stop()
            self._kubelet.close()
        for fault in faults:
            raise fault


def _watchdog(activity: Activity, settings: AdvertiserSettings) -> Watchdog:
    watchdog = Watchdog(activity, deadline_s=settings.plugin_deadline_s)
    watchdog.start()
    return watchdog
