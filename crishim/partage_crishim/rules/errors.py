"""All refusals of a container, each one stable sentence that kubelet shows to the user.

The same cause gives the same text, without counters, times or runtime ids, so that events aggregate. The text contains
no value of an annotation or variable and no signature, only names (cards, paths, plugins, keys), since everyone who may
read the pod can read it. The class name is a metric label.
"""

from __future__ import annotations

from partage_plugins.errors import Refused


class ContainerRefused(Refused):
    """Base class; the text names the rule, the object and what to do."""


class AllocationRefused(ContainerRefused):
    """The pod's allocation is not one that this node may act on."""


class RequestUnread(ContainerRefused):
    """The container's request cannot be read, on a node that guards its cards."""


class NoRoom(ContainerRefused):
    """The cards are not here, not ours to allocate, or others hold what was granted."""


class NotConfinable(ContainerRefused):
    """Limits cannot hold in this container."""


class PlacementRefused(ContainerRefused):
    """A mount or device is not what it must be, or overlaps one of the request."""


class CardsBesideUs(ContainerRefused):
    """The container asks for cards that bypass its allocation, or for one that carries grants."""


class ClaimRefused(ContainerRefused):
    """What kubelet passes for a claim was not prepared, or the container has more than the claim."""


def not_prepared(uid: str) -> ClaimRefused:
    return ClaimRefused(
        f"partage: claim {uid!a:.80} is not prepared on this node; is partage-dra running there? kubelet tries again"
    )


class NodeNotReady(ContainerRefused):
    """A required component of the node does not answer; kubelet retries."""
