"""Other objects that the scheduler watches: namespaces, storage, Leases."""

from __future__ import annotations

from msgspec import field

from partage_scheduler.objects.base import ApiObject, Identity, Int32, Labelled, Meta, Object
from partage_scheduler.objects.selectors import NodeSelector


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
