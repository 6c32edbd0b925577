"""The settings of the agent; the defaults are right for a machine with Docker or Podman."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from partage_base.daemon.plugin_host import PluginHostSettings
from partage_base.daemon.settings import Setting


class AgentSettings(PluginHostSettings, frozen=True, kw_only=True):
    """Settings of the daemon that gives containers of Docker and Podman their shares of cards."""

    restart_hold_s: Annotated[
        float,
        Meta(ge=0, le=3600),
        Setting(
            "Seconds that a container which ended keeps its place, unless it is removed: engines try a start only once."
        ),
    ] = 60.0
    nvidia_runtime: Annotated[
        str,
        Setting(
            "Program of NVIDIA's container runtime, which then runs containers with cards and attaches them; "
            "empty, partage does. MIG instances need it.",
            allowed="an absolute path, or empty",
        ),
    ] = ""
    hook: Annotated[
        Path | None,
        Setting("Program of the hook in containers with a share; by default the one that asks, partage-oci."),
    ] = None
    enforce: Annotated[
        Literal["strict", "advisory"],
        Setting("What becomes of a container whose limits nothing enforces: strict refuses it, advisory starts it."),
    ] = "strict"
    look_every_s: Annotated[
        float,
        Meta(ge=0.1, le=60),
        Setting("Seconds between looks at what containers still hold; most ends are seen at once."),
    ] = 5.0

    def __post_init__(self) -> None:
        if self.nvidia_runtime and not self.nvidia_runtime.startswith("/"):
            raise ValueError(f"nvidia_runtime is {self.nvidia_runtime!r:.80}; allowed: an absolute path, or empty")
