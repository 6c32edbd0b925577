"""The last step of a switch: confirm it before the rollback begins.

Since its restart kubelet must have asked crishim for the runtime's status and reported the Node as ready, crishim must
honour allocations, and a pod must have started. A fault that shows later is not rolled back automatically.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from partage_base.cri import CriError, UnaryClient
from partage_base.kube import ApiServer
from partage_cli.installation import turn
from partage_cli.installation.canary import Canary, remove_static
from partage_cli.installation.conversion import SavedFile, disarm
from partage_cli.installation.errors import TurnedBack
from partage_cli.installation.host import Host, api_of
from partage_cli.installation.inspection import Site, crishim_of
from partage_cli.installation.journal import Change, NoFacts, Plan, StepName
from partage_cli.installation.nodes import why_not_ready
from partage_cli.installation.preparation import why_not_honoured
from partage_plugins.api.places import KUBELET_SPOKE

_AGAIN_S: Final = 0.2
_TIMER_SLACK_S: Final = 15.0
"""After that the time has run out even if no timer ran."""


class Confirm:
    """Confirms the switch and stops the rollback's timer; raises `TurnedBack` if the rollback was first."""

    name: StepName = "confirm"
    facts_type = NoFacts

    def __init__(self, site: Site, files: Sequence[SavedFile], kubeconfig: Path | None, *, after_s: float) -> None:
        """Create it before kubelet is restarted: earlier reports of kubelet don't count.

        `kubeconfig` has credentials that may create pods, for a kubelet without static pods.
        """
        self._site, self._files, self._kubeconfig, self._after_s = site, files, kubeconfig, after_s
        self._since = datetime.now(UTC).replace(microsecond=0)

    def plan(self, host: Host) -> Plan[NoFacts]:
        said = f"the way back, once {self._site.kubelet} spoke through crishim, the node is ready and a pod has started"
        return Plan((Change("end", said),), NoFacts())

    def do(self, host: Host, facts: NoFacts) -> None:
        asyncio.run(self._confirmed(host))
        disarm(host, self._files)

    async def _confirmed(self, host: Host) -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(api_of(host, self._site.kubeconfig))
            maker = await stack.enter_async_context(api_of(host, str(self._kubeconfig))) if self._kubeconfig else None
            await self._watch(host, server, Canary(host, self._site, maker))

    async def _watch(self, host: Host, server: ApiServer, canary: Canary) -> None:
        """Polls until all conditions hold, or the rollback has begun."""
        loop = asyncio.get_running_loop()
        client = UnaryClient(host.path(crishim_of(host.root).listen))
        latest_s = loop.time() + self._after_s + _TIMER_SLACK_S
        why = ""
        try:
            while turn.state(host.root) == "armed" and loop.time() < latest_s:
                found = await self._why_not(host, server, canary, client)
                if found is None and turn.confirm(host.root):
                    return
                if found is not None and found != why:
                    host.say(found)
                why = found or why
                await asyncio.sleep(_AGAIN_S)
        finally:
            client.close()
            await canary.remove()
        raise TurnedBack(f"within {self._after_s:g} s {why or 'nothing was seen of kubelet'}")

    async def _why_not(self, host: Host, server: ApiServer, canary: Canary, client: UnaryClient) -> str | None:
        if not host.path(KUBELET_SPOKE).exists():
            return f"{self._site.kubelet} has not spoken through crishim"
        if why := await why_not_ready(server, self._site.node, self._since):
            return why
        if why := why_not_honoured(host.root):
            return why
        try:
            await canary.start(client)
            return None if await canary.runs(client) else "the pod that tries the node has not started"
        except CriError as error:
            return str(error)

    def undo(self, host: Host, facts: NoFacts) -> None:
        """A run that died may have left its canary."""
        remove_static(host, self._site)
