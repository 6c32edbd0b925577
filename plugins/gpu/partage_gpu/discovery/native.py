"""Decides whether kubelet hands out cards of this node: by a device plugin or a DRA driver. Pure.

Once it does, it does until five minutes passed without any trace of it, as long as kubelet itself waits for a plugin
that went away: while plugin, driver or kubelet restart, the cards are given to no one else. What can't be read is not
"none".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from partage_gpu.discovery.names import NVIDIA, Names
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.node import DeviceUse

HELD_FOR_S: Final = 300.0
_DRIVER: Final = "gpu.nvidia.com"

Registered = Mapping[str, Sequence[str]]
"""Devices by resource."""


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What kubelet's folder shows; None: it could not be read."""

    registered: Registered | None = None
    sockets: Sequence[str] | None = None
    """Names in the folder of plugins that registered with kubelet."""


@dataclass(frozen=True)
class Natives:
    seen_at_s: float | None = None

    def are_there(self, now_s: float) -> bool:
        """Now, or a little while ago."""
        return self.seen_at_s is not None and now_s - self.seen_at_s < HELD_FOR_S


def natives_after(natives: Natives, traces: Traces, names: Names, now_s: float) -> Natives:
    """With one more look at kubelet's folder."""
    if has_plugin(traces.registered or {}, names) or has_driver(traces.sockets or ()):
        return Natives(now_s)
    is_blind = traces.registered is None or traces.sockets is None
    return Natives(now_s) if is_blind and natives.are_there(now_s) else natives


def has_plugin(registered: Registered, names: Names) -> bool:
    """Whether a device plugin has our cards. NVIDIA's may be between two starts, with nothing to give."""
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
    """What kubelet's record of device plugins says; None where that is not understood."""
    try:
        devices = _CHECKPOINT.decode(checkpoint).data.registered or {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return {resource: ids or () for resource, ids in devices.items()}


def given_away(in_use: Sequence[DeviceUse], names: Names) -> dict[CardId, str]:
    """For each card that kubelet gave to somebody: to whom, in words. Of several the first by name, always the same."""
    given: dict[CardId, str] = {}
    for use in sorted(in_use, key=lambda use: (use.namespace, use.pod, use.container), reverse=True):
        who = f"{use.namespace}/{use.pod}" if use.namespace else use.pod
        for card in names.cards_of(use.resource, use.device):
            given[card] = f"kubelet gave it to pod {who} (container {use.container})"
    return given
