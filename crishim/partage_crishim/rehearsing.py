"""Goes through the last create with a grant once more, right before the next one; takes out what is over, no more.

After some milliseconds at rest the processor has forgotten the way through our code, and a container that goes it then
waits several times as long. A rehearsal takes what no container waits for. Whatever comes of it is of no consequence.
"""

from __future__ import annotations

import contextlib

from partage_base.cri import Changes, Draft, read_create
from partage_crishim.deciding.applying import changes_of, key_of, security_of, shown
from partage_crishim.deciding.capacity import Held, require_cards
from partage_crishim.deciding.confining import require_confinable
from partage_crishim.granting import Granting
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import Adjustment


class Rehearsal:
    """To be called when a create is near."""

    def __init__(self, grants: Granting) -> None:
        self._grants = grants

    def __call__(self) -> None:
        """Everything but the plugins, which look ahead by themselves, and what would be written."""
        message = self._grants.near.like
        if message is not None:
            with contextlib.suppress(PartageError, OSError):
                self._go_through(message)

    def _go_through(self, message: bytes) -> None:
        grants, request = self._grants, read_create(message)
        claim, known = grants.claim(request), grants.inventory.current()
        if claim is None or known is None:
            return
        grants.signatures.require(claim.text, claim.signature, grants.keyring.current().keys)
        require_cards(claim.cards, known.gpu)
        security, key = security_of(request, ""), key_of(request)
        require_confinable(security, claim, known.gpu, grants.policy.confinement)
        shown(request, key, security)
        mine = Held(key=key, pod=request.uid, container=request.container, gen=claim.allocation.gen, cards=claim.cards)
        grants.booking.rehearse(mine, known.gpu)
        Draft(message).changed(changes_of(Adjustment(), claim, key, Changes()))
