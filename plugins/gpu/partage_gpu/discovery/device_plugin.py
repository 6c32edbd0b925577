"""Decides whether kubelet hands out cards of this node, by a device plugin or a DRA driver. Pure.

If it does, the result holds until five minutes have passed without any trace of it, which is how long kubelet itself
waits for a plugin that went away: while plugin, driver or kubelet restart, the cards are given to no one else. Data
that can't be read does not count as "none".

Device plugins, CDI and DRA drivers name cards by ids of their own. A uuid identifies a card in every list, with any
suffix (`GPU-…::3`, `GPU-…-0`). Numbers count only from NVIDIA's own plugin or driver: others number things that are no
cards. Names that are not understood match no card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from partage_gpu.discovery.known import KnownCards, gpu_of
from partage_plugins.api.claims import DRIVER
from partage_plugins.api.gpu import RESERVATIONS
from partage_plugins.api.names import CardId
from partage_plugins.api.node import DeviceUse

NVIDIA: Final = "nvidia.com"
_BY_INDEX: Final = re.compile(r"(?:mig)?([0-9]{1,4})(?:$|:)", re.ASCII)
"""CDI and device plugins: `0`, `0:1` and `mig0:1` for an instance, `0::3` for a replica."""
_BY_MINOR: Final = re.compile(r"(?:^|-)(?:gpu-|nvidia)([0-9]{1,4})(?![0-9])", re.ASCII)
"""DRA: `gpu-0`, `gpu-0-mig-…`, and behind a claim's uid; other device plugins: `nvidia0`."""
_LONGEST: Final = 1024


class Names:
    def __init__(self, known: KnownCards) -> None:
        self._known = known
        self._cards: dict[CardId, set[CardId]] = {}
        for card in known.cards.values():
            self._cards.setdefault(card.id, set()).add(card.id)
            self._cards.setdefault(gpu_of(card), set()).add(card.id)
            if card.pci:
                self._cards.setdefault(CardId(card.pci), set()).add(card.id)

    def cards_of(self, resource: str, device: str) -> frozenset[CardId]:
        """The cards that `device` of `resource` refers to; for a GPU that is split into instances, all of them."""
        kind, _, name = device[:_LONGEST].rpartition("=")
        by_id = {card for id_ in self._cards if _stands_in(id_, name) for card in self._cards[id_]}
        if by_id or not _is_nvidias(kind or resource):
            return frozenset(by_id)
        if name == "all":
            return frozenset(self._known.cards)
        return frozenset(card for gpu in self._counted(name) for card in self._cards.get(gpu, ()))

    def _counted(self, name: str) -> Iterator[CardId]:
        by_index, by_minor = _BY_INDEX.match(name), _BY_MINOR.search(name)
        for gpu, numbers in self._known.numbers.items():
            minor = numbers.by_nvml if numbers.minor is None else numbers.minor
            if (by_index and int(by_index[1]) == numbers.by_nvml) or (by_minor and int(by_minor[1]) == minor):
                yield gpu


def _stands_in(id_: CardId, name: str) -> bool:
    """Whether the id is in the name, and is not just the beginning of a longer one."""
    at = name.find(id_)
    return at >= 0 and not name[at + len(id_) : at + len(id_) + 1].isalnum()


def _is_nvidias(resource: str) -> bool:
    domain = resource.partition("/")[0]
    return domain == NVIDIA or domain.endswith(f".{NVIDIA}")


HELD_FOR_S: Final = 300.0
_DRIVER: Final = "gpu.nvidia.com"

Registered = Mapping[str, Sequence[str]]
"""Devices by resource."""


@dataclass(frozen=True, kw_only=True)
class Traces:
    """The content of kubelet's folder; None: it could not be read."""

    registered: Registered | None = None
    sockets: Sequence[str] | None = None
    """Names, in that folder, of plugins that registered with kubelet."""


@dataclass(frozen=True)
class DevicePluginAllocations:
    seen_at_s: float | None = None

    def are_there(self, now_s: float) -> bool:
        """Whether kubelet hands out cards, now or recently."""
        return self.seen_at_s is not None and now_s - self.seen_at_s < HELD_FOR_S


def natives_after(
    natives: DevicePluginAllocations, traces: Traces, names: Names, now_s: float
) -> DevicePluginAllocations:
    """Updates the state after one more look at kubelet's folder."""
    if has_plugin(traces.registered or {}, names) or has_driver(traces.sockets or ()):
        return DevicePluginAllocations(now_s)
    is_blind = traces.registered is None or traces.sockets is None
    return DevicePluginAllocations(now_s) if is_blind and natives.are_there(now_s) else natives


def has_plugin(registered: Registered, names: Names) -> bool:
    """Whether a device plugin has our cards. NVIDIA's may be restarting, with no devices."""
    return any(
        any(names.cards_of(resource, device) for device in devices)
        or (not devices and resource.partition("/")[0] == NVIDIA)
        for resource, devices in registered.items()
    )


def has_driver(sockets: Sequence[str]) -> bool:
    """Whether NVIDIA's DRA driver for GPUs has registered."""
    return any(name == _DRIVER or name.startswith((f"{_DRIVER}-", f"{_DRIVER}.")) for name in sockets)


class _Data(msgspec.Struct, frozen=True):
    registered: dict[str, tuple[str, ...] | None] | None = msgspec.field(name="RegisteredDevices", default=None)


class _Checkpoint(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data")


_CHECKPOINT: Final = msgspec.json.Decoder(_Checkpoint)


def registered_in(checkpoint: bytes) -> Registered | None:
    """The content of kubelet's checkpoint of device plugins; None if it is not understood."""
    try:
        devices = _CHECKPOINT.decode(checkpoint).data.registered or {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return {resource: ids or () for resource, ids in devices.items()}


@dataclass(frozen=True, kw_only=True)
class Hands:
    """The cards that kubelet gave away or that others offer. Of several holders always the first by name."""

    given: Mapping[CardId, str] = field(default_factory=dict[CardId, str])
    """The holder or offerer, as text."""
    by_others: Mapping[CardId, str] = field(default_factory=dict[CardId, str])
    """The same without what our own DRA driver gave."""
    reserved: Mapping[CardId, str] = field(default_factory=dict[CardId, str])
    """The pod that reserves the card for us."""


def hands(in_use: Sequence[DeviceUse], names: Names) -> Hands:
    given: dict[CardId, str] = {}
    by_others: dict[CardId, str] = {}
    reserved: dict[CardId, str] = {}
    for use in sorted(in_use, key=lambda use: (use.namespace, use.pod, use.container), reverse=True):
        who = f"{use.namespace}/{use.pod}" if use.namespace else use.pod
        for card in names.cards_of(use.resource, use.device):
            if use.is_offered:
                given[card] = by_others[card] = f"DRA driver {use.resource} hands it out, as its ResourceSlice says"
            elif use.namespace == RESERVATIONS:
                reserved[card] = who
            else:
                given[card] = f"kubelet gave it to pod {who} (container {use.container})"
                if use.resource != DRIVER:
                    by_others[card] = given[card]
    return Hands(given=given, by_others=by_others, reserved=reserved)
