"""The variables with which HAMi-core passes limits to a container, set on the node; Volcano's users know them as well.

For information only: limits are enforced outside the container, regardless of their values. A node does not know the
dialect of a pod's request, so every container with a part of a card gets them.
"""

from __future__ import annotations

from typing import Final

from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.gpu import GPU, MIB, GpuGrant, GpuPart
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.hooks import hookimpl

MEMORY: Final = "CUDA_DEVICE_MEMORY_LIMIT_"
CORES: Final = "CUDA_DEVICE_SM_LIMIT"
_MILLI: Final = 10


class VgpuNames:
    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        """Memory limits by card, in the cards' order, and the first card's time limit."""
        del container
        grants, part = granted.of(GPU), granted.part(GPU)
        if part is None or not any(part.card(grant.card) and GPU.promises(grant, part) for grant in grants):
            return None
        return Adjustment(env=names_of(grants, part))


def names_of(grants: tuple[GpuGrant, ...], part: GpuPart) -> dict[str, str]:
    """The variables for a container's cards."""
    memory: dict[str, int] = {}
    limit: dict[str, int] = {}
    for grant in grants:
        memory[grant.card] = memory.get(grant.card, 0) + grant.memory_bytes
        limit[grant.card] = min(limit.get(grant.card, 0) + grant.limit_milli, WHOLE_MILLI)
    cards = [card.id for card in part.cards if card.id in memory]
    told = {f"{MEMORY}{place}": f"{memory[card] // MIB}m" for place, card in enumerate(cards)}
    return told | {CORES: str(-(-limit[cards[0]] // _MILLI))}
