"""A container with a grant, from its claim to the request that goes on: every check, the plugins, the rewrite.

Whatever fails after the reservation takes it back; that plugins prepared something is on record since, and the
collector tells them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from partage_base.cri import CreateRequest, Draft
from partage_base.keyring import Keyring
from partage_crishim.ahead import Ahead
from partage_crishim.booking import Booking
from partage_crishim.containerd import Containerd
from partage_crishim.deciding.applying import changes_of, key_of, security_of, shown
from partage_crishim.deciding.books import Reservation
from partage_crishim.deciding.capacity import Held, require_cards
from partage_crishim.deciding.claims import Claim, claim_of, decoded
from partage_crishim.deciding.confining import Confinement, is_fractional, require_confinable
from partage_crishim.deciding.errors import AllocationRefused, NodeNotReady
from partage_crishim.deciding.placing import Files, Roots, require_apart, require_sources
from partage_crishim.deciding.trust import Signatures, require_meant
from partage_crishim.guardian import Guardian, Look
from partage_crishim.inventory_file import InventoryFile, Known
from partage_crishim.siblings import Siblings
from partage_crishim.verdicts import Ending, Rewrite
from partage_plugins.codecs import container_key
from partage_plugins.host import PluginHost
from partage_plugins.rules.enforcement import Enforcement, require_enforced
from partage_plugins.sides.node import Adjusted
from partage_plugins.vocabulary import Container, ContainerKey, ContainerName, Granted, Kind, NodeName
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE


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


@dataclass
class Near:
    """What is known of the next container with a grant before it comes."""

    like: bytes | None = None
    """The last request that was granted."""
    gen: int = 0
    grants: Mapping[Kind, msgspec.Raw] | None = None
    """Of a container of the last pod that was expected."""


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
    siblings: Siblings
    host: PluginHost
    files: Files
    clean_up: Callable[[], None]
    """Something may be left behind: look soon."""
    signatures: Signatures = field(default_factory=Signatures)
    near: Near = field(default_factory=Near)
    closed: str = ""
    """Why no container gets its grant now, as a sentence for users; empty, as a rule."""

    def expect(self, annotations: Mapping[str, str]) -> int:
        """A pod with these has a sandbox, so its creates are near: verifies what will hardly change until then.

        Says how many containers have grants. What cannot be verified now is refused then, in words.
        """
        text = annotations.get(ALLOCATION)
        if text is not None:
            with contextlib.suppress(AllocationRefused):
                self._require_signed(text, annotations.get(SIGNATURE))
                allocation, by_container = decoded(text)
                for name, grants in by_container.items():
                    container_key(allocation.pod, ContainerName(name), 0)
                    self.near.gen, self.near.grants = allocation.gen, grants
                return len(by_container)
        return 0

    async def look_ahead(self) -> None:
        """The expected container is near: plugins may look at what it will need; raises what they do."""
        known, grants = self.inventory.current(), self.near.grants
        if known is not None and grants is not None:
            await self.host.expected(_granted(self.near.gen, grants, known))

    def claim(self, request: CreateRequest) -> Claim | None:
        """What the pod's allocation gives this container, None for nothing; an unsigned one is not parsed."""
        text, signature = request.annotations.get(ALLOCATION), request.annotations.get(SIGNATURE)
        if text is None:
            return None
        if not self.signatures.know(text, signature):
            self._require_signed(text, signature)
        return claim_of(request)

    async def rewrite(self, message: bytes, request: CreateRequest, claim: Claim) -> Rewrite:
        """The request as it goes on; raises a refusal or a plugin's fault."""
        if self.closed:
            raise NodeNotReady(self.closed)
        require_meant(claim, uid=request.uid, node=self.node)
        known = self._known()
        require_cards(claim.cards, known.gpu)
        handler = await self.containerd.handler_beside_listing(request.sandbox_id)
        security = security_of(request, handler)
        require_confinable(security, claim, known.gpu, self.policy.confinement)
        if request.pod_pid and is_fractional(claim.cards, known.gpu):
            await self.siblings.require_harmless(request)
        key = key_of(request)
        mine = Held(key=key, pod=request.uid, container=request.container, gen=claim.allocation.gen, cards=claim.cards)
        adjusting = Ahead(partial(self._adjusted, shown(request, key, security), claim, known))
        reservation: Reservation | None = None
        try:
            reservation = await self.booking.reserve(mine, known.gpu, checked=adjusting.begin)
            # The plugins' process is at work by now, so this costs no time; a key may be gone since it was looked at.
            self._require_signed(claim.text, claim.signature)
            draft, look = Draft(message), self.guardian.look(request)
            written = await self._written(draft, look, claim, key, await adjusting)
        except BaseException:
            adjusting.close()
            self._failed(reservation, asked=adjusting.has_begun)
            raise
        self.near.like = message
        return Rewrite(written, ended=partial(self._ended, reservation))

    def _require_signed(self, text: str, signature: str | None) -> None:
        self.signatures.require(text, signature, self.keyring.current().keys)

    def _known(self) -> Known:
        known = self.inventory.current()
        if known is None:
            raise NodeNotReady(
                "partage: this node's inventory is missing or cannot be read; is partage-advertiser running? "
                "kubelet tries again"
            )
        return known

    async def _adjusted(self, container: Container, claim: Claim, known: Known) -> Adjusted:
        return await self.host.adjust(container, _granted(claim.allocation.gen, claim.raw, known))

    async def _written(self, draft: Draft, look: Look, claim: Claim, key: ContainerKey, adjusted: Adjusted) -> bytes:
        require_enforced(adjusted.unenforced, self.policy.enforcement)
        require_apart(look.request.mounts, adjusted.adjustment)
        require_sources(adjusted.adjustment, adjusted.owners, self.files, self.policy.roots)
        guard = await self.guardian.changes_after(look, adjusted.adjustment.env)
        return draft.changed(changes_of(adjusted.adjustment, claim, key, guard))

    def _ended(self, reservation: Reservation, ending: Ending) -> None:
        self.booking.ended(reservation, ending)
        if ending is Ending.FAILED:
            self.clean_up()

    def _failed(self, reservation: Reservation | None, *, asked: bool) -> None:
        if reservation is not None:
            self._ended(reservation, Ending.FAILED)
        elif asked:
            self.clean_up()


def _granted(gen: int, grants: Mapping[Kind, msgspec.Raw], known: Known) -> Granted:
    """Grants with the parts of the inventory that they are of."""
    parts = {kind: known.parts[kind] for kind in grants if kind in known.parts}
    return Granted(gen=gen, grants=grants, parts=parts)
