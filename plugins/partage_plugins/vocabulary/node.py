"""What node plugins are told about the node, and the measurements they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Literal

from msgspec import Meta, Struct

from partage_plugins.vocabulary.names import NodeName

NodeRole = Literal["advertiser", "crishim", "dra", "oci"]
"""Which daemon hosts the plugin: the one that asks what exists, the one that adjusts containers, the one that prepares
claims, and asks for adjustments of them, or the agent beside Docker and Podman. To `oci` a container of an engine is a
pod of its own, whose uid is the engine's id."""


@dataclass(frozen=True)
class NodeContext:
    """Given once, before any other hook of a node plugin."""

    node: NodeName
    role: NodeRole
    root: PurePosixPath
    """All paths of the node lie below it; `/` but for tests."""
    wake: Callable[[], None]
    """Asks the advertiser to discover again now; may be called from any thread. Does nothing elsewhere."""
    driver_root: PurePosixPath = field(default_factory=partial(PurePosixPath, "/"))
    """Where the operator says that the devices' driver is installed, below the root."""
    host: PurePosixPath = field(default_factory=partial(PurePosixPath, "/"))
    """In a container, where the host's root is mounted: what a runtime is told of paths there is without it."""


class DeviceUse(Struct, frozen=True, kw_only=True):
    """A device that kubelet gave to a container by its own device manager or by DRA, or that is about to be given."""

    resource: str
    device: str
    namespace: str
    pod: str
    container: str
    is_offered: bool = False
    """A DRA driver, named by `resource`, offers it by a ResourceSlice; who has it is not said."""


class Gauge(Struct, frozen=True, kw_only=True):
    """One measurement; the host exports it as `partage_<name>`."""

    name: Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{0,62}\Z")]
    value: float
    labels: Mapping[str, str] = {}
