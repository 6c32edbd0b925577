"""A container with a grant, from its claim to the request that goes on: every check, the plugins, the rewrite.

Whatever fails after the reservation takes it back; that plugins prepared something is on record since, and the
collector tells them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from partage_base.cri import Changes, CreateRequest, rewritten
from partage_base.keyring import Keyring
from partage_crishim.booking import Booking
from partage_crishim.containerd import Containerd
from partage_crishim.deciding.applying import changes_of, key_of, security_of, shown
from partage_crishim.deciding.books import Reservation
from partage_crishim.deciding.capacity import Held, require_cards
from partage_crishim.deciding.claims import Claim
from partage_crishim.deciding.confining import Confinement, require_confinable
from partage_crishim.deciding.errors import NodeNotReady
from partage_crishim.deciding.guarding import VISIBLE
from partage_crishim.deciding.placing import Files, Roots, require_apart, require_sources
from partage_crishim.deciding.trust import require_meant, require_signed
from partage_crishim.guardian import Guardian
from partage_crishim.inventory_file import InventoryFile, Known
from partage_crishim.verdicts import Ending, Rewrite
from partage_plugins.host import PluginHost
from partage_plugins.rules.enforcement import Enforcement, require_enforced
from partage_plugins.sides.node import Adjusted
from partage_plugins.vocabulary import Container, ContainerKey, Granted, NodeName


@dataclass(frozen=True, kw_only=True)
class GrantPolicy:
    """What the operator set for containers with grants."""

    roots: Roots
    enforcement: Enforcement = "strict"
    confinement: Confinement = field(default_factory=Confinement)


def default_roots(root: Path, *more: Path) -> Roots:
    """Where drivers, libraries and the broker's folders usually lie; links are followed before anything is compared."""
    usual = ("run/partage", "run/nvidia", "usr", "opt", "lib", "lib64")
    mounts = {str(path.resolve()) for path in (*(root / each for each in usual), *more)}
    devices = {str((root / each).resolve()) for each in ("dev", "run/nvidia/driver/dev")}
    return Roots(mounts=tuple(sorted(mounts)), devices=tuple(sorted(devices)))


@dataclass(frozen=True, kw_only=True)
class Granting:
    """Those who have a word in granting."""

    node: NodeName
    policy: GrantPolicy
    keyring: Keyring
    inventory: InventoryFile
    containerd: Containerd
    booking: Booking
    guardian: Guardian
    host: PluginHost
    files: Files
    clean_up: Callable[[], None]
    """Something may be left behind: look soon."""

    async def rewrite(self, message: bytes, request: CreateRequest, claim: Claim) -> Rewrite:
        """The request as it goes on; raises a refusal or a plugin's fault."""
        require_signed(claim, self.keyring.current().keys)
        require_meant(claim, uid=request.uid, node=self.node)
        known = self._known()
        require_cards(claim.cards, known.gpu)
        handler = await self.containerd.handler_beside_listing(request.sandbox_id)
        security = security_of(request, handler)
        require_confinable(security, claim, known.gpu, self.policy.confinement)
        key = key_of(request)
        mine = Held(key=key, pod=request.uid, container=request.container, gen=claim.allocation.gen, cards=claim.cards)
        reservation = await self.booking.reserve(mine, known.gpu)
        try:
            adjusted = await self._adjusted(shown(request, key, security), claim, known)
            written = await self._written(message, request, claim, key, adjusted)
        except BaseException:
            self._ended(reservation, Ending.FAILED)
            raise
        return Rewrite(written, ended=partial(self._ended, reservation))

    def _known(self) -> Known:
        known = self.inventory.current()
        if known is None:
            raise NodeNotReady(
                "partage: this node's inventory is missing or cannot be read; is partage-advertiser running? "
                "kubelet tries again"
            )
        return known

    async def _adjusted(self, container: Container, claim: Claim, known: Known) -> Adjusted:
        parts = {kind: known.parts[kind] for kind in claim.raw if kind in known.parts}
        return await self.host.adjust(container, Granted(gen=claim.allocation.gen, grants=claim.raw, parts=parts))

    async def _written(
        self, message: bytes, request: CreateRequest, claim: Claim, key: ContainerKey, adjusted: Adjusted
    ) -> bytes:
        require_enforced(adjusted.unenforced, self.policy.enforcement)
        require_apart(request.mounts, adjusted.adjustment)
        require_sources(adjusted.adjustment, adjusted.owners, self.files, self.policy.roots)
        # Where a plugin says which cards NVIDIA's runtime is to add, nothing is left for the guard to say.
        guard = Changes() if VISIBLE in adjusted.adjustment.env else await self.guardian.changes(request)
        return rewritten(message, changes_of(adjusted.adjustment, claim, key, guard))

    def _ended(self, reservation: Reservation, ending: Ending) -> None:
        self.booking.ended(reservation, ending)
        if ending is Ending.FAILED:
            self.clean_up()
