"""Keeps cards from being used both by kubelet's own containers and by shares: what each side is refused. Pure.

kubelet records what it allocates to a container before the container's create. A native create checks all grants,
including reserved ones. A create with a grant reserves it first, and checks kubelet's record afterwards. So if two
creates meet on a card, at least one sees the other, in any order.

A card that kubelet allocated to a reservation is ours: the inventory names that pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partage_crishim.rules.errors import CardsBesideUs, NoRoom
from partage_crishim.rules.holdings import Holding
from partage_plugins.api import CardId, GpuGrant, GpuPart
from partage_plugins.api.node import DeviceUse

_DRIVER = "gpu.nvidia.com"
"""A DRA driver whose device names only it can interpret."""


def require_unshared(native: Iterable[CardId], held: Iterable[Holding], part: GpuPart | None, *, pod: str) -> None:
    """Refuse a native container whose card, or part of it, carries grants, unless `pod` is its reservation."""
    with_kin = _with_kin(frozenset(native), part)
    for each in held:
        for grant in each.cards:
            if grant.card in with_kin and not _is_reserved_by(pod, grant.card, part):
                raise CardsBesideUs(
                    f"partage: kubelet gave this container card {grant.card}, which carries grants of partage; reserve "
                    "each card for one of both, and delete the pod to move it"
                )


def require_ours(grants: Sequence[GpuGrant], uses: Iterable[DeviceUse], part: GpuPart | None) -> None:
    """Refuse grants on a card that kubelet allocated, entirely or in part."""
    given = tuple(uses)
    for grant in grants:
        with_kin = _with_kin(frozenset((grant.card,)), part)
        for use in given:
            if _names_one_of(use, with_kin) and not _is_reserved_by(f"{use.namespace}/{use.pod}", grant.card, part):
                raise NoRoom(
                    f"partage: kubelet gave card {grant.card} to a pod by itself, so it is not shared; kubelet tries "
                    "again, and where this stays, delete the pod to move it"
                )


def _names_one_of(use: DeviceUse, cards: frozenset[CardId]) -> bool:
    """Whether a use is of one of these cards; plugins and drivers use device ids that contain the uuid."""
    if use.resource == _DRIVER and "GPU-" not in use.device and "MIG-" not in use.device:
        return True
    return any(_stands_in(card, use.device) for card in cards)


def _stands_in(card: CardId, device: str) -> bool:
    """Whether the device id contains the card id, not merely as the beginning of a longer id."""
    at = device.find(card)
    return at >= 0 and not device[at + len(card) : at + len(card) + 1].isalnum()


def _is_reserved_by(pod: str, card_id: CardId, part: GpuPart | None) -> bool:
    card = part.card(card_id) if part else None
    return card is not None and card.reservation is not None and card.reservation == pod


def _with_kin(mine: frozenset[CardId], part: GpuPart | None) -> frozenset[CardId]:
    """These cards, the parent GPUs of MIG instances among them, and the instances of GPUs among them."""
    kin = set[CardId]()
    for card in part.cards if part else ():
        if card.parent is not None and card.id in mine:
            kin.add(card.parent)
        elif card.parent in mine:
            kin.add(card.id)
    return mine | kin
