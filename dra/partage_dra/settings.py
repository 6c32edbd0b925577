"""The settings of the DRA driver. The defaults are right for our DaemonSet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from partage_base.daemon.api_server import Kubeconfig
from partage_base.daemon.plugin_host import PluginHostSettings
from partage_base.daemon.settings import Setting
from partage_dra.parts import ALLOWED, Cuts, cuts_of


class DraSettings(PluginHostSettings, frozen=True, kw_only=True):
    """Settings of the daemon that publishes cards of the pool dra and prepares claims on them."""

    kubeconfig: Kubeconfig = None
    host: Annotated[
        Path,
        Setting("In a container, where the host's root is mounted: driver_root begins there, as the host has it not."),
    ] = Path("/")
    publish: Annotated[
        bool,
        Setting("Whether kube-scheduler may allocate: false publishes no ResourceSlice."),
    ] = True
    parts: Annotated[
        tuple[str, ...],
        Setting("Cards that are handed out in equal fixed parts, and not in free shares.", allowed=ALLOWED),
    ] = ()
    enforce: Annotated[
        Literal["strict", "advisory"],
        Setting("What becomes of a claim whose limits nothing enforces: strict refuses it, advisory prepares it."),
    ] = "strict"
    look_every_s: Annotated[
        float,
        Meta(ge=0.1, le=60),
        Setting("Seconds between looks at the node's inventory, and at claims that were let go of."),
    ] = 1.0

    def __post_init__(self) -> None:
        cuts_of(self.parts)

    @property
    def cuts(self) -> Cuts:
        return cuts_of(self.parts)
