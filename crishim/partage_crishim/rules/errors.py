"""Every refusal of a container: one stable sentence each, which kubelet shows to the user.

The same cause gives the same words: no counter, time or runtime id, so that events aggregate. No value of an annotation
or variable, no signature: only what names things (cards, paths, plugins, keys), since everyone who may read the pod
reads this. The name of the class is a label of a metric.
"""

from __future__ import annotations

from partage_plugins.errors import Refused


class ContainerRefused(Refused):
    """Base; says which rule, on what, what to do."""


class AllocationRefused(ContainerRefused):
    """The allocation on the pod is not one that this node may act on."""


class RequestUnread(ContainerRefused):
    """What the container asks for cannot be told, on a node that guards its cards."""


class NoRoom(ContainerRefused):
    """The cards are not here, not ours to give, or others hold what was granted."""


class NotConfinable(ContainerRefused):
    """Limits cannot hold in such a container."""


class PlacementRefused(ContainerRefused):
    """A mount or device is not what it must be, or meets one of the request."""


class CardsBesideUs(ContainerRefused):
    """The container asks for cards past its allocation, or for one that carries grants."""


class ClaimRefused(ContainerRefused):
    """What kubelet gives by a claim is not what was prepared, or not all that the container has."""


def not_prepared(uid: str) -> ClaimRefused:
    return ClaimRefused(
        f"partage: claim {uid!a:.80} is not prepared on this node; is partage-dra running there? kubelet tries again"
    )


class NodeNotReady(ContainerRefused):
    """A part of the node that is needed does not answer; kubelet tries again."""
