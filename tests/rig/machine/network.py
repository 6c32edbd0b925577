"""The bridge between the host and a rig's nodes, and each node's connection to it.

A node has a network namespace, so its ports, its pod bridge and its packet filter rules are its own and end with it.
Only the rig's bridge and one end of each node's veth pair are on the host. Their alias is the run folder, by which a
later rig knows the owner.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Final, Protocol

from rig.errors import MachineUnfit
from rig.machine.addresses import Addresses, NodeAddresses

_ALIAS: Final = "partage rig "
CABLE: Final = "eth0"


def make_bridge(addresses: Addresses, run_folder: str) -> None:
    _refuse_clash(addresses)
    name = addresses.bridge
    _ip("link", "add", name, "type", "bridge")
    _ip("link", "set", name, "alias", _ALIAS + run_folder)
    _ip("addr", "add", f"{addresses.host}/{addresses.network.prefixlen}", "dev", name)
    _ip("link", "set", name, "up")


class OnTheNetwork(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def addresses(self) -> NodeAddresses: ...


def connect(addresses: Addresses, newcomer: OnTheNetwork, others: Sequence[OnTheNetwork], run_folder: str) -> None:
    """Create a node's veth pair, and set routes to all nodes' pods on all nodes."""
    node, pid = newcomer.addresses, str(newcomer.pid)
    _ip("link", "add", node.veth, "type", "veth", "peer", "name", CABLE, "netns", pid)
    _ip("link", "set", node.veth, "alias", _ALIAS + run_folder)
    _ip("link", "set", node.veth, "master", addresses.bridge, "up")
    inside = _inside(newcomer)
    _ip("addr", "add", f"{node.ip}/{addresses.network.prefixlen}", "dev", CABLE, inside=inside)
    _ip("link", "set", "lo", "up", inside=inside)
    _ip("link", "set", CABLE, "up", inside=inside)
    _ip("route", "add", "default", "via", str(addresses.host), inside=inside)
    _run(*inside, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    _tell_the_way(None, node)
    for other in others:
        _tell_the_way(newcomer, other.addresses)
        _tell_the_way(other, node)


def _tell_the_way(listener: OnTheNetwork | None, node: NodeAddresses) -> None:
    inside = _inside(listener) if listener else ()
    _ip("route", "replace", str(node.pods), "via", str(node.ip), inside=inside)


def _inside(node: OnTheNetwork) -> tuple[str, ...]:
    return ("nsenter", "--target", str(node.pid), "--net", "--")


def remove(addresses: Addresses, run_folder: str) -> None:
    """Remove every device of this rig that is left; the veth pair of a stopped node is already gone."""
    for name in devices_of(run_folder):
        _run("ip", "link", "delete", name, may_fail=True)
    if left := devices_of(run_folder):
        raise MachineUnfit(f"cannot remove the network devices {', '.join(left)}; try: ip link delete NAME")


def devices_of(run_folder: str) -> list[str]:
    links = json.loads(_run("ip", "-json", "link", "show"))
    return [link["ifname"] for link in links if link.get("ifalias") == _ALIAS + run_folder]


def _refuse_clash(addresses: Addresses) -> None:
    names = [link["ifname"] for link in json.loads(_run("ip", "-json", "link", "show"))]
    if addresses.bridge in names:
        raise MachineUnfit(f"a network device {addresses.bridge} exists that is not ours; remove it or rename it")


def _ip(*arguments: str, inside: tuple[str, ...] = ()) -> str:
    return _run(*inside, "ip", *arguments)


def _run(*argv: str, may_fail: bool = False) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        raise MachineUnfit(f"`{' '.join(argv)}` failed: {done.stderr.strip()}")
    return done.stdout
