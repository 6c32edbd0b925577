"""Claims on devices and their classes (DRA), as far as the scheduler reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from partage_scheduler.objects.base import ApiObject, Identity, Int64, Object


class Cel(Object, frozen=True, kw_only=True):
    expression: str = ""


class Selector(Object, frozen=True, kw_only=True):
    """One that has no expression is of a sort that is not known here."""

    cel: Cel | None = None


class Opaque(Object, frozen=True, kw_only=True):
    driver: str = ""
    parameters: Any = None


class Config(Object, frozen=True, kw_only=True):
    """What a driver is told beside amounts; of a claim: for these requests, or for all."""

    requests: tuple[str, ...] = ()
    opaque: Opaque | None = None


class ClassSpec(Object, frozen=True, kw_only=True):
    selectors: tuple[Selector, ...] = ()
    config: tuple[Config, ...] = ()


class ApiDeviceClass(ApiObject, frozen=True, kw_only=True):
    spec: ClassSpec = ClassSpec()


class Capacity(Object, frozen=True, kw_only=True):
    requests: Mapping[str, str] = {}


class Exactly(Object, frozen=True, kw_only=True):
    """Devices of one class; of each of them so much."""

    device_class_name: str = ""
    selectors: tuple[Selector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    capacity: Capacity | None = None


class DeviceRequest(Object, frozen=True, kw_only=True):
    name: str = ""
    exactly: Exactly | None = None
    """None where it names alternatives."""


class DeviceRequests(Object, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Any, ...] = ()
    config: tuple[Config, ...] = ()


class ResourceClaimSpec(Object, frozen=True, kw_only=True):
    devices: DeviceRequests = DeviceRequests()


class DeviceResult(Object, frozen=True, kw_only=True):
    """One device, and what of it was given."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    admin_access: bool | None = None
    consumed_capacity: Mapping[str, str] = {}


class Results(Object, frozen=True, kw_only=True):
    results: tuple[DeviceResult, ...] = ()


class ClaimAllocation(Object, frozen=True, kw_only=True):
    devices: Results = Results()


class Consumer(Object, frozen=True, kw_only=True):
    """Who may use an allocated claim: a pod, as `resource` says."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(Object, frozen=True, kw_only=True):
    allocation: ClaimAllocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaimMeta(Identity, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] = ()


class ApiResourceClaim(ApiObject, frozen=True, kw_only=True):
    metadata: ResourceClaimMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def results(self) -> tuple[DeviceResult, ...]:
        """All devices that it was given; none where it is not allocated."""
        allocation = self.status.allocation
        return () if allocation is None else allocation.devices.results

    @property
    def consumers(self) -> frozenset[str]:
        """The uids of the pods that it is reserved for."""
        return frozenset(each.uid for each in self.status.reserved_for)
