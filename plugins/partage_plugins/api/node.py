"""What node plugins get to know about the node, and the measurements that they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Literal

from msgspec import Meta, Struct

from partage_plugins.api.names import NodeName

NodeRole = Literal["advertiser", "crishim", "dra", "oci"]
"""The daemon that hosts the plugin: `advertiser` runs discovery, `crishim` adjusts containers, `dra` prepares claims
and requests adjustments for them, `oci` is the agent beside Docker and Podman. For `oci` each container of an engine is
a pod of its own, whose uid is the engine's id."""


@dataclass(frozen=True)
class NodeContext:
    """Passed once, before any other hook of a node plugin is called."""

    node: NodeName
    role: NodeRole
    root: PurePosixPath
    """The folder that contains all paths of the node; `/` except in tests."""
    wake: Callable[[], None]
    """Makes the advertiser run discovery again now; may be called from any thread. No effect in other daemons."""
    driver_root: PurePosixPath = field(default_factory=partial(PurePosixPath, "/"))
    """Where the operator has installed the devices' driver, below the root."""
    host: PurePosixPath = field(default_factory=partial(PurePosixPath, "/"))
    """If the daemon runs in a container: where the host's root is mounted. Paths given to a runtime omit this
    prefix."""


class DeviceUse(Struct, frozen=True, kw_only=True):
    """A device that kubelet's device manager or DRA allocated to a container, or is about to allocate."""

    resource: str
    device: str
    namespace: str
    pod: str
    container: str
    is_offered: bool = False
    """A DRA driver, named by `resource`, offers it by a ResourceSlice; its holder is not known."""


class Gauge(Struct, frozen=True, kw_only=True):
    """One measurement; the host exports it as `partage_<name>`."""

    name: Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{0,62}\Z")]
    value: float
    labels: Mapping[str, str] = {}
