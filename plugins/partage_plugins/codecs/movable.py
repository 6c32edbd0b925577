"""What a container must say beside `partage.dev/movable`, so that its memory can leave the card. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from partage_plugins.codecs.policies import by_container
from partage_plugins.codecs.quantity import format_bytes, parse_quantity
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.vocabulary import keys
from partage_plugins.vocabulary.gpu import GpuRequest
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.names import ContainerName
from partage_plugins.vocabulary.pods import PodContainer

_MAIN_MEMORY: Final = "memory"


def require_one(text: str, names: tuple[ContainerName, ...], *, asking: Collection[ContainerName]) -> None:
    """Refuses a pod that opts in, and in which no container asks in this dialect: nothing would move."""
    if not asking and "yes" in by_container(keys.MOVABLE, text, names).values():
        allowed = f"a pod with a container that asks by {keys.GPU_MEMORY}"
        raise DecodeError("request", path=keys.MOVABLE, value=repr(text), allowed=allowed)


def require_movable(container: PodContainer, wanted: GpuRequest) -> None:
    """Refuses a container that moves and has the whole of a card, no amount of memory, or too little main memory."""
    if not wanted.movable:
        return
    name = container.name
    if wanted.share_milli == WHOLE_MILLI:
        raise Refused(f"{keys.MOVABLE}: container {name} has all of a card's time and never makes room; ask for a part")
    if wanted.count > 1:
        raise Refused(
            f"{keys.MOVABLE}: container {name} asks for {wanted.count} cards, and memory moves from one alone: "
            "programs on several reach each other's"
        )
    if wanted.memory_bytes is None:
        raise Refused(f"{keys.MOVABLE}: container {name} must say by {keys.GPU_MEMORY} how much memory is to be moved")
    moved_bytes = wanted.memory_bytes
    said = container.limits.get(_MAIN_MEMORY)
    if said is None or parse_quantity(said, path=f"containers.{name}.limits[{_MAIN_MEMORY}]") < moved_bytes:
        size = format_bytes(moved_bytes)
        has = "has none" if said is None else f"has {said}"
        raise Refused(f"movable memory of {size} needs limits.memory of at least {size} on container {name}; it {has}")
