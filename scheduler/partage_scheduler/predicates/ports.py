"""Ports of the node itself that pods use: one pod for each address, protocol and port; no address means all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partage_plugins.vocabulary.answers import Flags
from partage_scheduler.deciding import Barred
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.counters import Counter

TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"
ANY: Final = "0.0.0.0"  # noqa: S104  (compared, nothing is bound to it)

HostPort = tuple[str, int, str]
"""Protocol, port and address."""


def host_ports(pod: ApiPod) -> tuple[HostPort, ...]:
    """The ports of its node that a pod uses; those of sidecars too, since they stay."""
    found: dict[HostPort, None] = {}
    sidecars = (each for each in pod.spec.init_containers if each.restart_policy == "Always")
    for container in (*sidecars, *pod.spec.containers):
        for port in container.ports:
            if port.host_port > 0:
                found[port.protocol or "TCP", port.host_port, port.host_ip or ANY] = None
    return tuple(found)


class Ports:
    """Which ports are in use on which nodes."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[str, Counter]] = {}

    def take(self, slot: int, ports: Iterable[HostPort]) -> None:
        """A pod on that node uses these."""
        for protocol, port, address in ports:
            by_address = self._used.setdefault((protocol, port), {})
            if address not in by_address:
                by_address[address] = Counter()
            by_address[address].add(slot, 1)

    def give_back(self, slot: int, ports: Iterable[HostPort]) -> None:
        """It does not any more."""
        for protocol, port, address in ports:
            by_address = self._used[protocol, port]
            by_address[address].add(slot, -1)
            if not by_address[address]:
                del by_address[address]
                if not by_address:
                    del self._used[protocol, port]

    def barred(self, wanted: Iterable[HostPort], end: int) -> list[Barred]:
        """Where one of these is in use."""
        taken: Flags | None = None
        for protocol, port, address in wanted:
            for other, counter in self._used.get((protocol, port), {}).items():
                if ANY in (address, other) or address == other:
                    flags = counter.flags(end)
                    taken = flags if taken is None else taken | flags
        return [] if taken is None else [Barred(TAKEN, taken)]
