"""Other objects that the scheduler watches: namespaces, storage, Leases, quotas, disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from msgspec import field
from msgspec.structs import force_setattr

from partage_plugins.api.keys import GPU_RESOURCES
from partage_scheduler.objects.base import ApiObject, Identity, Int32, Labelled, Meta, Object
from partage_scheduler.objects.selectors import LabelSelector, NodeSelector

_REQUESTS: Final = "requests."
_MOST: Final = 64
"""Limit of a budget's labels, of its expressions, and of an expression's values."""


class ApiNamespace(ApiObject, frozen=True, kw_only=True):
    metadata: Labelled


class VolumeAffinity(Object, frozen=True, kw_only=True):
    """Nodes on which a volume can be reached."""

    required: NodeSelector | None = None


class Reference(Object, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(Object, frozen=True, kw_only=True):
    """The CSI driver of a volume, and the volume's handle there."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Object, frozen=True, kw_only=True):
    node_affinity: VolumeAffinity | None = None
    claim_ref: Reference | None = None
    csi: CsiSource | None = None
    storage_class_name: str = ""


class ApiVolume(ApiObject, frozen=True, kw_only=True):
    metadata: Labelled
    spec: VolumeSpec = VolumeSpec()


class ClaimNotes(Object, frozen=True, kw_only=True):
    bind_completed: str | None = field(default=None, name="pv.kubernetes.io/bind-completed")
    storage_class: str = field(default="", name="volume.beta.kubernetes.io/storage-class")
    """The StorageClass as it was named before the field existed."""


class ClaimMeta(Identity, frozen=True, kw_only=True):
    annotations: ClaimNotes = ClaimNotes()


class ClaimSpec(Object, frozen=True, kw_only=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()


class ClaimStatus(Object, frozen=True, kw_only=True):
    phase: str = ""


class ApiClaim(ApiObject, frozen=True, kw_only=True):
    metadata: ClaimMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ApiStorageClass(ApiObject, frozen=True, kw_only=True):
    """A StorageClass, which defines when a volume is bound to a claim."""

    volume_binding_mode: str = "Immediate"


class DriverRoom(Object, frozen=True, kw_only=True):
    """Number of volumes of one driver that a node takes; None is any number."""

    count: Int32 | None = None


class NodeDriver(Object, frozen=True, kw_only=True):
    name: str
    allocatable: DriverRoom | None = None


class NodeDrivers(Object, frozen=True, kw_only=True):
    drivers: tuple[NodeDriver, ...] | None = ()
    """kubelet writes null where there are none."""


class ApiCsiNode(ApiObject, frozen=True, kw_only=True):
    """A CSINode: the drivers of the node that has the same name."""

    spec: NodeDrivers = NodeDrivers()


class LeaseSpec(Object, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None


class ApiLease(ApiObject, frozen=True, kw_only=True):
    """A Lease: a heartbeat, or a lock."""

    metadata: Meta
    spec: LeaseSpec = LeaseSpec()


class QuotaSpec(Object, frozen=True, kw_only=True):
    hard: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: Any = None

    def __post_init__(self) -> None:
        """Keeps limits of cards, by the resource names of pods; a quota with scopes is left to the API server."""
        named = {key.removeprefix(_REQUESTS): text for key, text in self.hard.items()}
        ours = {key: text for key, text in named.items() if key in GPU_RESOURCES}
        force_setattr(self, "hard", {} if self.scopes or self.scope_selector else ours)
        force_setattr(self, "scope_selector", None)


class ApiQuota(ApiObject, frozen=True, kw_only=True):
    """A ResourceQuota: the cards that all pods of its namespace may hold."""

    spec: QuotaSpec = QuotaSpec()


class BudgetSpec(Object, frozen=True, kw_only=True):
    selector: LabelSelector | None = None

    def __post_init__(self) -> None:
        """Keeps the first terms of an excessive selector: the budget then protects more pods, and none less."""
        selector = self.selector
        if selector is None or (len(selector.match_labels) <= _MOST and not selector.match_expressions):
            return
        short = (each for each in selector.match_expressions if len(each.values) <= _MOST)
        labels = dict(islice(selector.match_labels.items(), _MOST))
        first = LabelSelector(match_labels=labels, match_expressions=tuple(islice(short, _MOST)))
        force_setattr(self, "selector", first)


class BudgetStatus(Object, frozen=True, kw_only=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: Mapping[str, str] = {}
    """Pods whose disruption the API server has already counted, by name."""


class ApiBudget(ApiObject, frozen=True, kw_only=True):
    """A PodDisruptionBudget: how many pods of a selection may be disrupted."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
