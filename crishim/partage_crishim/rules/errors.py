"""Every refusal of a container, as one tree: one stable sentence each, which kubelet shows to the user.

    Refused
    └── ContainerRefused
        ├── AllocationRefused    the allocation on the pod is not one that this node may act on
        ├── NoRoom               the cards are not here, not ours, or others hold what was granted
        ├── NotConfinable        limits cannot hold in such a container
        ├── PlacementRefused     a mount or device is not what it must be, or meets one of the request
        ├── CardsBesideUs        the container asks for cards past its allocation, or for one that carries grants
        ├── NodeNotReady         a part of the node that is needed does not answer; kubelet tries again
        └── RestoreRefused       a checkpoint of a pod with an allocation

The same cause gives the same words: no counter, time or runtime id, so that events aggregate. No value of an annotation
or variable, no signature: only what names things (cards, paths, plugins, keys), since everyone who may read the pod
reads this. `rule` is the label of a metric.
"""

from __future__ import annotations

from typing import ClassVar

from partage_plugins.errors import Refused


class ContainerRefused(Refused):
    """Base; says which rule, on what, what to do."""

    rule: ClassVar[str] = "container"


class AllocationRefused(ContainerRefused):
    """The allocation on the pod is not one that this node may act on."""

    rule = "allocation"


class NoRoom(ContainerRefused):
    """The cards are not here, not ours to give, or others hold what was granted."""

    rule = "capacity"


class NotConfinable(ContainerRefused):
    """Limits cannot hold in such a container."""

    rule = "confinement"


class PlacementRefused(ContainerRefused):
    """A mount or device is not what it must be, or meets one of the request."""

    rule = "placement"


class CardsBesideUs(ContainerRefused):
    """The container asks for cards past its allocation, or for one that carries grants."""

    rule = "guard"


class NodeNotReady(ContainerRefused):
    """A part of the node that is needed does not answer; kubelet tries again."""

    rule = "node"


class RestoreRefused(ContainerRefused):
    """A checkpoint of a pod with an allocation."""

    rule = "restore"
