"""Specification and status of a pod as the scheduler reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import field
from msgspec.structs import force_setattr

from partage_scheduler.objects.base import Condition, Int32, Object
from partage_scheduler.objects.selectors import Affinity, SpreadConstraint, Toleration

_SPEAKS: Final = "GPU"
_VARIABLES: Final = 8
_LONGEST_NAME: Final = 64


class Named(Object, frozen=True, kw_only=True):
    name: str = ""


class Amounts(Object, frozen=True, kw_only=True):
    limits: Mapping[str, str] = {}
    requests: Mapping[str, str] = {}
    claims: tuple[Named, ...] = ()


class ContainerPort(Object, frozen=True, kw_only=True):
    """A `host_port` of 0 is none."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Object, frozen=True, kw_only=True):
    name: str
    image: str = ""
    restart_policy: str | None = None
    """`Always` makes a sidecar of an init container."""
    resources: Amounts = Amounts()
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[Named, ...] = ()
    """The first variables with GPU in their names; no others are kept."""

    def __post_init__(self) -> None:
        if self.env:
            speak = [each for each in self.env if _SPEAKS in each.name and len(each.name) <= _LONGEST_NAME]
            force_setattr(self, "env", tuple(speak[:_VARIABLES]))


class ClaimSource(Object, frozen=True, kw_only=True):
    claim_name: str


class Anything(Object, frozen=True, kw_only=True):
    """A field that is only checked for presence."""


class Volume(Object, frozen=True, kw_only=True):
    """A volume; only sources that affect where a pod can run are read."""

    name: str
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Anything | None = None
    """A PersistentVolumeClaim of the pod's own, named `pod-volume`."""
    gce_persistent_disk: Anything | None = None
    aws_elastic_block_store: Anything | None = None
    iscsi: Anything | None = None
    rbd: Anything | None = None


class PodClaim(Object, frozen=True, kw_only=True):
    """A ResourceClaim that containers refer to by `name`: an existing one, or one made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodClaimStatus(Object, frozen=True, kw_only=True):
    """The claim that was made from a template; None if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class Gate(Object, frozen=True, kw_only=True):
    """A scheduling gate: while it exists, the pod is not to be scheduled."""

    name: str


class Group(Object, frozen=True, kw_only=True):
    """The group of pods that this one belongs to."""

    pod_group_name: str = ""


class PodSpec(Object, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str = "PreemptLowerPriority"
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    overhead: Mapping[str, str] = {}
    termination_grace_period_seconds: int = 30
    resources: Amounts | None = None
    """Resources of the pod as a whole."""
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodClaim, ...] = ()
    scheduling_gates: tuple[Gate, ...] = ()
    scheduling_group: Group | None = None


class ContainerStatus(Object, frozen=True, kw_only=True):
    """Resources that kubelet gave a container; during a resize they differ from the specification."""

    name: str
    allocated_resources: Mapping[str, str] = {}
    resources: Amounts | None = None


class PodStatus(Object, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    allocated_resources: Mapping[str, str] = {}
    """Resources of the pod as a whole."""
    resources: Amounts | None = None
