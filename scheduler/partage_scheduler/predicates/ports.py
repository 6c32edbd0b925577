"""Host ports that pods use: one pod for each address, protocol and port; no address means all.

However many addresses of a port are in use, at most two counts are read: those of the requested address and of the
wildcard; for a request of the wildcard, that of any address.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.counters import Counter

TAKEN: Final = Reason("host-ports", "node(s) didn't have free ports for the requested pod ports")
ANY: Final = "0.0.0.0"  # noqa: S104  (compared, nothing is bound to it)

HostPort = tuple[str, int, str]
"""Protocol, port and address."""


def host_ports(pod: ApiPod) -> tuple[HostPort, ...]:
    """Includes those of sidecars, which keep running."""
    found: dict[HostPort, None] = {}
    sidecars = (each for each in pod.spec.init_containers if each.restart_policy == "Always")
    for container in (*sidecars, *pod.spec.containers):
        for port in container.ports:
            if port.host_port > 0:
                found[port.protocol or "TCP", port.host_port, port.host_ip or ANY] = None
    return tuple(found)


class _Port:
    __slots__ = ("any", "by_address")

    def __init__(self) -> None:
        self.any, self.by_address = Counter(), dict[str, Counter]()

    def add(self, slot: int, address: str, number: int) -> None:
        counter = self.by_address.get(address) or self.by_address.setdefault(address, Counter())
        counter.add(slot, number)
        if not counter:
            del self.by_address[address]
        self.any.add(slot, number)

    def in_the_way(self, address: str) -> Iterable[Counter]:
        if address == ANY:
            return (self.any,)
        return [counter for counter in map(self.by_address.get, (address, ANY)) if counter is not None]


class Ports:
    def __init__(self) -> None:
        self._used: dict[tuple[str, int], _Port] = {}

    def take(self, slot: int, ports: Iterable[HostPort]) -> None:
        for protocol, port, address in ports:
            used = self._used.get((protocol, port)) or self._used.setdefault((protocol, port), _Port())
            used.add(slot, address, 1)

    def give_back(self, slot: int, ports: Iterable[HostPort]) -> None:
        for protocol, port, address in ports:
            used = self._used[protocol, port]
            used.add(slot, address, -1)
            if not used.any:
                del self._used[protocol, port]

    def barred(self, wanted: Iterable[HostPort], end: int) -> list[FilteredNodes]:
        taken: Flags | None = None
        for protocol, port, address in wanted:
            used = self._used.get((protocol, port))
            for counter in () if used is None else used.in_the_way(address):
                flags = counter.flags(end)
                taken = flags if taken is None else taken | flags
        return [] if taken is None else [FilteredNodes(TAKEN, taken)]
