"""The bridge's network: which addresses it takes, and how containerd is told of it. Pure.

The addresses must be no others' that this machine reaches, or containers would hide them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from partage_cli.machine.places import ADDRESSES, BRIDGE, NETWORKS
from partage_cli.machine.setup.errors import Unfit

CONFLIST: Final = f"{NETWORKS}/10-partage.conflist"
PLUGINS: Final = ("bridge", "firewall", "host-local", "loopback", "portmap")
"""Programs that it needs."""
LARGEST_PREFIX: Final = 28
_CANDIDATES: Final = tuple(IPv4Network(f"10.{number}.0.0/16") for number in (213, 217, 229, 241, 187, 173))
"""Away from what Docker, Podman, k3s and kubeadm take by default."""
_FIELDS: Final = 8


def routes_of(table: str) -> tuple[IPv4Network, ...]:
    """What /proc/net/route says of routes that lead over other devices than ours; a default route says nothing."""
    rows = (line.split() for line in table.splitlines()[1:])
    found = (
        IPv4Network((_address(row[1]), _address(row[7]))) for row in rows if len(row) >= _FIELDS and row[0] != BRIDGE
    )
    return tuple(network for network in found if network.prefixlen)


def chosen_network(wanted: str | None, routes: Sequence[IPv4Network]) -> IPv4Network:
    """The wanted one, else the first that meets no route; raises `Unfit`."""
    if wanted is not None:
        network = network_of(wanted)
        if met := _met(network, routes):
            raise Unfit(f"network {network} meets {met}, which this machine has a route to; choose another")
        return network
    for network in _CANDIDATES:
        if _met(network, routes) is None:
            return network
    tried = ", ".join(map(str, _CANDIDATES))
    raise Unfit(f"each of {tried} meets a route of this machine; name a free network with --network")


def network_of(text: str) -> IPv4Network:
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise Unfit(f"{text!r:.80} is no network: {error}; as 10.213.0.0/16") from None
    if not network.is_private or network.prefixlen > LARGEST_PREFIX:
        raise Unfit(f"network {network}: allowed are private ones of at most /{LARGEST_PREFIX}, as 10.213.0.0/16")
    return network


def conflist(network: IPv4Network, root: Path) -> str:
    """`firewall` lets packets pass where others, as Docker, drop what they do not know."""
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(network)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(root / ADDRESSES),
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    document = {"cniVersion": "1.0.0", "name": "partage", "plugins": [bridge, portmap, {"type": "firewall"}]}
    return json.dumps(document, indent=2) + "\n"


def _met(network: IPv4Network, routes: Iterable[IPv4Network]) -> IPv4Network | None:
    return next((route for route in routes if route.overlaps(network)), None)


def _address(text: str) -> str:
    """As the kernel writes it: hexadecimal, in the machine's order of bytes, which is little-endian."""
    return str(IPv4Address(int.from_bytes(bytes.fromhex(text), "little")))
