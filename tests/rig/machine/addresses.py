"""A rig's addresses and names, derived from its slot. Pure.

198.18.0.0/15 is reserved for benchmarks of network devices (RFC 2544), so no real network clashes with it. Each slot
has a /20 of it: the first /24 is for the host and the nodes, the others are the nodes' pod subnets. As every rig has
its own address, its components listen on their well-known ports: there is no search for free ports, and no race for
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from rig.errors import MachineUnfit

_ALL: Final = IPv4Network("198.18.0.0/15")
_OF_RIGS: Final = tuple(_ALL.subnets(new_prefix=20))
SLOTS: Final = range(len(_OF_RIGS) - 1)
SERVICES: Final = next(_OF_RIGS[-1].subnets(new_prefix=24))
"""Service addresses. Nothing routes them: there is no kube-proxy."""
_NODES: Final = range(1, 16)


@dataclass(frozen=True)
class NodeAddresses:
    ip: IPv4Address
    pods: IPv4Network
    veth: str

    def holds(self, address: str) -> bool:
        return IPv4Address(address) in self.pods


@dataclass(frozen=True)
class Addresses:
    slot: int

    @property
    def _whole(self) -> IPv4Network:
        return _OF_RIGS[self.slot]

    @property
    def network(self) -> IPv4Network:
        return next(self._whole.subnets(new_prefix=24))

    @property
    def host(self) -> IPv4Address:
        return self.network[1]

    @property
    def bridge(self) -> str:
        """The bridge between the host and the nodes."""
        return f"partage{self.slot}"

    def node(self, index: int) -> NodeAddresses:
        if index not in _NODES:
            raise MachineUnfit(f"a rig has room for {len(_NODES)} nodes, not for {index}")
        pods = list(self._whole.subnets(new_prefix=24))[index]
        return NodeAddresses(ip=self.network[10 + index], pods=pods, veth=f"partage{self.slot}n{index}")
