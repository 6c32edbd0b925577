"""Ports of the machine that pods have: each belongs to one pod at a time. Pure.

The network's plugins take the same port twice without a word, and what listens behind the first is reached no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partage_cli.machine.pods.pod import ContainerPort, Pod

_EVERY: Final = frozenset(("", "0.0.0.0", "::"))  # noqa: S104  (read, not listened on)


def why_taken(pod: Pod, others: Mapping[str, Pod]) -> str:
    """Empty where the pod may have all its ports beside those of the others, which are given by name."""
    wanted = _ports(pod)
    for number, port in enumerate(wanted):
        for other in wanted[:number]:
            if _clash(port, other):
                return f"it asks twice for port {_shown(port)} of this machine; say each once"
        for name, another in others.items():
            if any(_clash(port, held) for held in _ports(another)):
                return f"port {_shown(port)} of this machine is pod {name}'s; take another, or stop {name}"
    return ""


def _ports(pod: Pod) -> tuple[ContainerPort, ...]:
    return tuple(port for each in pod.spec.containers for port in each.ports if port.host_port is not None)


def _clash(one: ContainerPort, other: ContainerPort) -> bool:
    if (one.host_port, one.protocol) != (other.host_port, other.protocol):
        return False
    return one.host_ip == other.host_ip or one.host_ip in _EVERY or other.host_ip in _EVERY


def _shown(port: ContainerPort) -> str:
    return f"{port.host_port}/{port.protocol.lower()}"
