"""Which victims are suspended instead of deleted. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from partage_plugins.api import GPU, Allocation, Inventory
from partage_plugins.codecs.critical import SUSPENDED
from partage_plugins.codecs.suspension import read_suspend
from partage_plugins.errors import DecodeError
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.objects import ApiPod

_WITH_CHECKPOINTS: Final = 570
"""The first branch of the driver that takes memory away that does not move by itself."""


class Suspension(Struct, frozen=True):
    """A pod that is suspended or resumed: booked so, and to be written on the pod."""

    pod: ApiPod
    before: Allocation
    booked: Allocation


def may_suspend(placed: PlacedPod, inventory: Inventory) -> bool:
    """Whether its owner allows it, and its node can take all of it off the cards: parts of cards, each with limits."""
    pod, allocation, part = placed.pod, placed.allocation, inventory.part(GPU)
    if placed.assumed or pod.is_going or pod.spec.resource_claims or placed.held.unknown is not None:
        return False
    if (
        part is None
        or SUSPENDED not in inventory.reads.crit
        or not (inventory.ready.broker and inventory.ready.crishim)
    ):
        return False
    try:
        is_allowed = read_suspend(pod.metadata.annotations)
    except DecodeError:
        return False
    if not is_allowed or allocation.uses or allocation.suspended is not None:
        return False
    branch = part.driver.partition(".")[0]
    has_checkpoints = branch.isascii() and branch.isdigit() and int(branch) >= _WITH_CHECKPOINTS
    given = [grant for grants in allocation.of(GPU).values() for grant in grants]
    return (
        bool(given)
        and all(kind == GPU.name for grants in allocation.containers.values() for kind in grants)
        and all(GPU.promises(grant, part) and (grant.movable or has_checkpoints) for grant in given)
    )
