"""Lists on each node's Lease which of its pods were resized, so that the node fetches only those.

The text that a Lease needs follows from the pods, and its present text is known; it is written if they differ. So
nothing has to be remembered, and a restart loses nothing. A pod takes at most 0.4 KiB: a Lease holds all pods that
kubelet runs.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final

import msgspec

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, KubeError, lease_path
from partage_plugins.api import PodUid
from partage_plugins.api.keys import RESIZED_PODS
from partage_plugins.api.names import Namespace, PodName
from partage_plugins.codecs.resize import ResizedPod
from partage_scheduler.authority import Authority
from partage_scheduler.core import Core
from partage_scheduler.metrics import Figures

EVERY_S: Final = 1.0
AT_ONCE: Final = 64
"""Leases that are written in one pass; the others follow in the next."""


class ResizedPods:
    def __init__(
        self,
        server: ApiServer,
        core: Core,
        *,
        namespace: str,
        authority: Authority,
        figures: Figures,
    ) -> None:
        """`namespace` has the Leases of nodes."""
        self._server, self._namespace, self._authority, self._figures = server, namespace, authority, figures
        self._repeats = Repeats(every_s=60)
        self._placed_pods, self._said = core.cluster.placed_pods, core.event_handlers.heartbeats.resized

    async def run(self) -> None:
        while True:
            if self._authority.may_decide():
                await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        wanted = self._wanted()
        others = [(node, text) for node, said in self._said.items() if (text := wanted.get(node, "")) != said]
        turn = random.sample(others, min(AT_ONCE, len(others)))  # random: Leases that are reverted delay no others
        await asyncio.gather(*[self._write(node, text) for node, text in turn])

    def _wanted(self) -> Mapping[str, str]:
        """The text for each node that has resized pods."""
        found: dict[str, dict[PodUid, ResizedPod]] = {}
        for placed in self._placed_pods.resized():
            pod, gen = placed.pod, placed.allocation.gen
            if gen > 1:
                there = found.setdefault(placed.node, {})
                there[pod.uid] = ResizedPod(namespace=Namespace(pod.namespace), name=PodName(pod.name), gen=gen)
        return {node: msgspec.json.encode(dict(sorted(pods.items()))).decode() for node, pods in found.items()}

    async def _write(self, node: str, text: str) -> None:
        body = {"metadata": {"annotations": {RESIZED_PODS: text or None}}}
        try:
            await self._server.patch(lease_path(self._namespace, node), body, msgspec.Raw)
        except KubeError as error:
            self._figures.erred(error)
            self._repeats.failed(
                "pods that were resized are not named on the Lease of their node yet", error, node=node
            )
            return
        if node in self._said:
            self._said[node] = text
