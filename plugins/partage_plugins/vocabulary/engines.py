"""A container of an engine such as Docker or Podman that asks for a share, as the parts of a machine know it.

The engine creates it by `partage-oci`, which asks the agent; the agent places it and has the broker prepare a claim
for it, under a key of its own for each create: an engine starts a container again under the same id.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

from msgspec import Meta

from partage_plugins.vocabulary.names import ContainerKey

EngineId = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z_]{32,128}\Z")]
"""By which an engine such as Docker knows a container, and names its control group: too long to be another's name."""
_DIGITS: Final = 32


def engine_key(id_: str, n: int) -> ContainerKey:
    """Under which the broker serves it; no pod's container and no claim has such a one."""
    return ContainerKey(hashlib.sha256(f"oci/{id_}/{n}".encode()).hexdigest()[:_DIGITS])
