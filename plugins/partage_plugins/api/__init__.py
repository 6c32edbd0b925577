"""The types of the plugin contract, one for each term of the glossary; frozen data, with units in the names.

`names` and `limits` constrain identifiers and amounts; `kinds` defines a family of devices; `inventory`, `pods`,
`allocation`, `containers` and `reasons` are exchanged between the components; `gpu` and `health` are our own kind. No
I/O and no decoding here.
"""

from partage_plugins.api.allocation import Allocation, ContainerAllocation, Grants, SuspendedFor
from partage_plugins.api.containers import Adjustment, Container, Device, Granted, Mount, Runtime, Security
from partage_plugins.api.gpu import GPU, Card, GpuGrant, GpuPart, GpuRequest, Pool, Tags
from partage_plugins.api.health import CardHealth, HealthCause, State
from partage_plugins.api.inventory import Inventory, Reads, Ready
from partage_plugins.api.kinds import AnyKind, KindType, Promise, Role
from partage_plugins.api.names import (
    BudgetName,
    CardId,
    ContainerKey,
    ContainerName,
    KeyId,
    Kind,
    Namespace,
    NodeName,
    PluginName,
    PodName,
    PodUid,
    Slot,
    budget_of,
    grantee_of,
)
from partage_plugins.api.pods import (
    Budgeted,
    BudgetUse,
    ContainerRequest,
    Gang,
    Pod,
    PodContainer,
    PodRef,
    PodRequest,
    Resources,
)
from partage_plugins.api.reasons import Reason
from partage_plugins.api.topology import Bundle, Levels

__all__ = [
    "GPU",
    "Adjustment",
    "Allocation",
    "AnyKind",
    "BudgetName",
    "BudgetUse",
    "Budgeted",
    "Bundle",
    "Card",
    "CardHealth",
    "CardId",
    "Container",
    "ContainerAllocation",
    "ContainerKey",
    "ContainerName",
    "ContainerRequest",
    "Device",
    "Gang",
    "GpuGrant",
    "GpuPart",
    "GpuRequest",
    "Granted",
    "Grants",
    "HealthCause",
    "Inventory",
    "KeyId",
    "Kind",
    "KindType",
    "Levels",
    "Mount",
    "Namespace",
    "NodeName",
    "PluginName",
    "Pod",
    "PodContainer",
    "PodName",
    "PodRef",
    "PodRequest",
    "PodUid",
    "Pool",
    "Promise",
    "Reads",
    "Ready",
    "Reason",
    "Resources",
    "Role",
    "Runtime",
    "Security",
    "Slot",
    "State",
    "SuspendedFor",
    "Tags",
    "budget_of",
    "grantee_of",
]


def __getattr__(name: str) -> object:
    """Names the new class to a plugin that imports `Room`, for one release."""
    if name == "Room":
        raise ImportError("partage_plugins.api.Room is now Resources; the table of names is in CHANGELOG.md")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
