"""ResourceClaims and DeviceClasses (DRA) as the scheduler reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from partage_scheduler.objects.base import ApiObject, Identity, Int64, Object


class Cel(Object, frozen=True, kw_only=True):
    expression: str = ""


class Selector(Object, frozen=True, kw_only=True):
    """A device selector; one without an expression is of an unknown type."""

    cel: Cel | None = None


class Opaque(Object, frozen=True, kw_only=True):
    driver: str = ""
    parameters: Any = None


class Config(Object, frozen=True, kw_only=True):
    """Configuration for a driver; in a claim, for these requests, or for all if there are none."""

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
    """A number of devices of one class, and the amounts of each of them."""

    device_class_name: str = ""
    selectors: tuple[Selector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    capacity: Capacity | None = None


class DeviceRequest(Object, frozen=True, kw_only=True):
    name: str = ""
    exactly: Exactly | None = None
    """None if it names alternatives."""


class DeviceRequests(Object, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Any, ...] = ()
    config: tuple[Config, ...] = ()


class ResourceClaimSpec(Object, frozen=True, kw_only=True):
    devices: DeviceRequests = DeviceRequests()


class DeviceResult(Object, frozen=True, kw_only=True):
    """An allocated device, and how much of it was given."""

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
    """A user of an allocated claim; `resource` is `pods` for a pod."""

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
        """All devices allocated to it; empty if it is not allocated."""
        allocation = self.status.allocation
        return () if allocation is None else allocation.devices.results

    @property
    def consumers(self) -> frozenset[str]:
        """Uids of the pods that it is reserved for."""
        return frozenset(each.uid for each in self.status.reserved_for)
