"""Devices of this node that other DRA drivers offer in ResourceSlices; plugins see them as devices in use.

Two drivers that offer the same card would both allocate it. The last known state is kept while the API server is away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    Listed,
    Lost,
    Meta,
    Seen,
    Undecodable,
    follow,
    resource_slices_path,
)
from partage_plugins.api.claims import DRIVER
from partage_plugins.api.node import DeviceUse

FIRST_S: Final = 0.5
MOST_S: Final = 60.0
UUID: Final = "uuid"
PCI_ADDRESS: Final = "resource.kubernetes.io/pciBusID"


class _Attribute(msgspec.Struct, frozen=True):
    string: str | None = None


class _Device(msgspec.Struct, frozen=True):
    name: str
    attributes: dict[str, _Attribute] = {}


class _Spec(msgspec.Struct, frozen=True):
    driver: str
    devices: tuple[_Device, ...] = ()


class DriverSlice(msgspec.Struct, frozen=True):
    """The fields of a ResourceSlice that show which cards another driver offers."""

    metadata: Meta
    spec: _Spec


def offered_by(slice_: DriverSlice) -> Iterator[DeviceUse]:
    """The devices of a slice, under all names that identify a card; none for our own driver. Pure."""
    driver = slice_.spec.driver
    for device in slice_.spec.devices if driver != DRIVER else ():
        for name in _names(device):
            yield DeviceUse(resource=driver, device=name, namespace="", pod="", container="", is_offered=True)


def _names(device: _Device) -> Iterator[str]:
    """Its uuids; without any, its PCI addresses, if given, and its name."""
    said = {name: each.string for name, each in device.attributes.items() if each.string}
    uuids = [value for name, value in said.items() if name.rpartition("/")[2] == UUID]
    yield from uuids
    if not uuids:
        yield from (value for name, value in said.items() if name == PCI_ADDRESS)
        yield device.name


class OtherDrivers:
    """All other DRA drivers of one node."""

    def __init__(self, server: ApiServer, node: str, *, changed: Callable[[], None]) -> None:
        """`changed` is called when the offered devices change."""
        self._server, self._node, self._changed = server, node, changed
        self._slices: dict[str, DriverSlice] = {}
        self._offered: tuple[DeviceUse, ...] = ()
        self._repeats = Repeats(every_s=300)

    @property
    def offered(self) -> tuple[DeviceUse, ...]:
        return self._offered

    async def run(self) -> None:
        """Follow the slices of this node until cancelled."""
        backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)
        only = f"spec.nodeName={self._node}"
        async for seen in follow(self._server, resource_slices_path(), DriverSlice, fields=only, backoff=backoff):
            self._take(seen)

    def _take(self, seen: Seen[DriverSlice]) -> None:
        match seen:
            case Listed(items):
                self._slices = {item.metadata.name: item for item in items}
            case Changed(item):
                self._slices[item.metadata.name] = item
            case Deleted(item):
                self._slices.pop(item.metadata.name, None)
            case Lost(error):
                self._repeats.failed("what other DRA drivers offer can't be followed; it will be tried again", error)
            case Undecodable():
                self._repeats.say("a ResourceSlice of this node can't be read", why=seen.why)
        offered = tuple(use for each in self._slices.values() for use in offered_by(each))
        if offered != self._offered:
            self._offered = offered
            self._changed()
