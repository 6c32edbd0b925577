"""Objects of claims and classes for our driver, as JSON that an API server takes."""

from __future__ import annotations

from typing import Any, Final

from partage_plugins.api.claims import DRIVER
from rig.client.resources import Json

API: Final = "resource.k8s.io/v1"
CLASS: Final = f"shared.{DRIVER}"
_PARAMETERS: Final = {"apiVersion": "partage.dev/v1", "kind": "ShareConfig"}
_OURS: Final = f'device.driver == "{DRIVER}" && device.allowMultipleAllocations'


def config(*requests: str, driver: str = DRIVER, **parameters: Any) -> Json:
    """Parameters for these requests of a claim; without any, for all."""
    of = {"requests": list(requests)} if requests else {}
    return {**of, "opaque": {"driver": driver, "parameters": _PARAMETERS | parameters}}


def device_class(limit_milli: int | None = None, *, name: str = CLASS, expression: str = _OURS) -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": expression}}]}
    if limit_milli is not None:
        spec["config"] = [config(limitMilli=limit_milli)]
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def request(share: int | str | None = 300, memory: str | None = "1Gi", *, name: str = "gpu", **more: Any) -> Json:
    """A request for one device; without an amount for all of it."""
    amounts = {"share": None if share is None else str(share), "memory": memory}
    asked_for = {name: amount for name, amount in amounts.items() if amount is not None}
    capacity = {"capacity": {"requests": asked_for}} if asked_for else {}
    return {"name": name, "exactly": {"deviceClassName": CLASS, **capacity, **more}}


def devices(*requests: Json, limit_milli: int | None = None, **more: Any) -> Json:
    """A claim's spec."""
    if limit_milli is not None:
        more["config"] = [config(limitMilli=limit_milli)]
    return {"devices": {"requests": list(requests), **more}}


def result(device: str, share: str | None = "300", memory: str | None = "8Gi", **more: Any) -> Json:
    """What an allocation gives for one request."""
    consumed = {"share": share, "memory": memory}
    return {
        "request": "gpu",
        "driver": DRIVER,
        "pool": "n1",
        "device": device,
        "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
        "consumedCapacity": {name: amount for name, amount in consumed.items() if amount is not None},
        **more,
    }
