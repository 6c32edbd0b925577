"""How much CPU and main memory a pod needs of its node, as kubelet will count it.

App containers and sidecars run at once. Init containers run one after another, each beside the sidecars that were
declared before it. What is not requested but limited counts as requested. Fractions are rounded up. Amounts that no
machine has are refused, so that sums of them stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from partage_plugins.codecs import parse_quantity
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import Pod, PodContainer, Room
from partage_scheduler.decision.rooms import plus

_NOTHING: Final = Room()
_MOST_CPUS: Final = 1 << 24
_MOST_BYTES: Final = 1 << 50


def needs_of(pod: Pod, overhead: Mapping[str, str] | None = None) -> Room:
    """The most that it needs at any time; a `DecodeError` names a quantity that is none."""
    running, highest = _NOTHING, _NOTHING
    for container in pod.containers:
        asked = _asked(container)
        if container.role == "init":
            highest = _higher(highest, plus(running, asked))
        else:
            running = plus(running, asked)
    return plus(_higher(highest, running), room_of(overhead or {}, path="$.overhead"))


def room_of(quantities: Mapping[str, str], *, path: str) -> Room:
    """What `cpu` and `memory` of a list of resources say; a `DecodeError` names what is none, or too much."""
    return Room(
        cpu_milli=ceil(1000 * _amount(quantities, "cpu", path, _MOST_CPUS)),
        memory_bytes=ceil(_amount(quantities, "memory", path, _MOST_BYTES)),
    )


def _asked(container: PodContainer) -> Room:
    return room_of({**container.limits, **container.requests}, path=f"$.containers.{container.name}")


def _amount(quantities: Mapping[str, str], name: str, path: str, most: int) -> Fraction:
    text = quantities.get(name, "0")
    amount = parse_quantity(text, path=f"{path}.{name}")
    if not 0 <= amount <= most:
        raise DecodeError("quantity", path=f"{path}.{name}", value=repr(text), allowed=f"from 0 to {most}")
    return amount


def _higher(one: Room, other: Room) -> Room:
    return Room(cpu_milli=max(one.cpu_milli, other.cpu_milli), memory_bytes=max(one.memory_bytes, other.memory_bytes))
