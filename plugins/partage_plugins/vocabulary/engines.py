"""A container of an engine such as Docker or Podman that asks for a share, as the parts of a machine know it.

The engine creates it by `partage-oci`, which asks the agent; the agent places it and has the broker prepare a claim
for it, under a key of its own for each create: an engine starts a container again under the same id.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

from msgspec import Meta, Struct

from partage_plugins.vocabulary.gpu import GpuGrant
from partage_plugins.vocabulary.names import ContainerKey

EngineId = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z_]{32,128}\Z")]
"""By which an engine such as Docker knows a container, and names its control group: too long to be another's name."""
_DIGITS: Final = 32


class EngineRecord(Struct, frozen=True, kw_only=True):
    """What the agent holds for one create of a container; it stands as long as the room is held."""

    v: int = 1
    id: EngineId
    n: Annotated[int, Meta(ge=1)]
    """Which create of this id it is."""
    grants: Annotated[tuple[GpuGrant, ...], Meta(min_length=1)]
    pid: int
    """Of the process that creates it."""
    start: int
    """When that began: tells it from another of the same pid."""
    runtime: str
    """The engine's OCI runtime, by which the container can be stopped, with `root` as its `--root`."""
    root: str
    folder: str = ""
    """Of the container at its engine, which takes it away with the container; empty where none is known."""
    is_created: bool = False
    """The process that creates it has ended, and a container was there."""

    @property
    def key(self) -> ContainerKey:
        return engine_key(self.id, self.n)


def engine_key(id_: str, n: int) -> ContainerKey:
    """Under which the broker serves it; no pod's container and no claim has such a one."""
    return ContainerKey(hashlib.sha256(f"oci/{id_}/{n}".encode()).hexdigest()[:_DIGITS])
