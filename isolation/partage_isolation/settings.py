"""What the broker can be told. Everything has a default that is right on a node with one containerd."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from partage_base.daemon.settings import CommonSettings, Setting


class BrokerSettings(CommonSettings, frozen=True, kw_only=True):
    """Of the daemon that keeps containers within their memory."""

    library_folder: Annotated[
        Path, Setting("Folder of the preload library; each version lies in a folder of its own below.")
    ] = Path("/usr/local/lib/partage")
    runtime: Annotated[Path, Setting("Socket of the container runtime, which is asked what runs.")] = Path(
        "/run/containerd/containerd.sock"
    )
    driver_root: Annotated[Path, Setting("Folder in which the NVIDIA driver is installed.")] = Path("/")
    audit_every_s: Annotated[
        float,
        Meta(ge=0.1, le=60),
        Setting("Seconds between looks at what cards and the runtime really have; freed memory is believed then."),
    ] = 1.0
    context_in_limit: Annotated[
        bool,
        Setting("Count what contexts take into a container's memory; without it each process takes that on top."),
    ] = True
    on_violation: Annotated[
        Literal["stop", "report"],
        Setting("What to do with a container whose limits are found not to be in force."),
    ] = "stop"
    nvml_deadline_s: Annotated[
        float, Meta(gt=0, le=30), Setting("Seconds that the driver may take to tell who uses a card.")
    ] = 2.0
