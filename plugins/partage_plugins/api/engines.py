"""A container of an engine such as Docker or Podman that requests a share, as the components on a machine see it.

The engine creates it through `partage-oci`, which calls the agent; the agent places it and has the broker prepare a
claim for it. Each create gets a key of its own, because an engine restarts a container under the same id.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

from msgspec import Meta

from partage_plugins.api.names import ContainerKey

EngineId = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z_]{32,128}\Z")]
"""An engine's id of a container, which also names its cgroup; too long to be confused with another name."""
_DIGITS: Final = 32


def engine_key(id_: str, n: int) -> ContainerKey:
    """The key under which the broker serves it; it can't equal the key of a pod's container or of a claim."""
    return ContainerKey(hashlib.sha256(f"oci/{id_}/{n}".encode()).hexdigest()[:_DIGITS])
