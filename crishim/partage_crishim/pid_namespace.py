"""The shared PID namespace check: no container that could enter another starts beside one with part of a card.

The second of the two is refused. The capabilities of running containers come from the runtime. kubelet creates the
containers of a pod one after the other, so two of them are never checked at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

from partage_base.cri import CreateRequest
from partage_crishim.containerd import Containerd
from partage_crishim.ledger import CardLedger
from partage_crishim.rules.confinement import Confinement, is_able_to_enter, is_fractional, may_enter, not_confinable
from partage_crishim.rules.errors import NotConfinable
from partage_plugins.api import GpuPart


@dataclass(frozen=True)
class PidNamespaceCheck:
    """The containers of a pod that share a PID namespace."""

    containerd: Containerd
    ledger: CardLedger
    policy: Confinement

    async def require_harmless(self, request: CreateRequest) -> None:
        """Refuse a container with part of a card that shares its processes with one that can enter it."""
        if self.policy.allow_unconfined:
            return
        for other in await self.containerd.living(request.sandbox_id):
            if other.name != request.container and may_enter(await self.containerd.capabilities(other)):
                raise not_confinable(
                    f"a container that shares its processes with {other.name!a:.80}, which can enter it,"
                )

    async def require_no_part(self, request: CreateRequest, part: GpuPart | None) -> None:
        """Refuse any container that can enter one with part of a card."""
        sees_others = request.pod_pid or request.target
        if not sees_others or self.policy.allow_unconfined or not is_able_to_enter(request):
            return
        if await self._has_part(request, part, fresh=False) and await self._has_part(request, part, fresh=True):
            raise NotConfinable(
                "partage: a container that is privileged or has CAP_SYS_ADMIN or CAP_SYS_PTRACE cannot share processes "
                "with one that has part of a card, since limits would not hold there; change it, or do not share them"
            )

    async def _has_part(self, request: CreateRequest, part: GpuPart | None, *, fresh: bool) -> bool:
        """Whether a container that this one would see has part of a card; its own earlier attempts do not count."""
        held = await self.ledger.held(fresh=fresh)
        found = {
            each.key
            for each in held
            if each.pod == request.uid and each.container != request.container and is_fractional(each.cards, part)
        }
        if found and fresh and request.target:
            return not found.isdisjoint(self.containerd.keys_of(request.target))
        return bool(found)
