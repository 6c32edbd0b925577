"""What the DRA driver can be told. Everything has a default that is right in our DaemonSet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from partage_base.daemon.settings import CommonSettings, Setting
from partage_dra.parts import ALLOWED, Cuts, cuts_of


class DraSettings(CommonSettings, frozen=True, kw_only=True):
    """Of the daemon that publishes cards of the pool dra and prepares claims on them."""

    kubeconfig: Annotated[
        Path | None,
        Setting("File that says how to reach the API server; without it KUBECONFIG, then the pod's service account."),
    ] = None
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
    plugin_deadline_s: Annotated[
        float, Meta(gt=0, le=30), Setting("A plugin that takes longer than this for one claim is killed.")
    ] = 5.0
    plugin_memory_bytes: Annotated[
        int, Meta(ge=128 << 20), Setting("What the process of the plugins may allocate.")
    ] = 512 << 20

    def __post_init__(self) -> None:
        cuts_of(self.parts)

    @property
    def cuts(self) -> Cuts:
        return cuts_of(self.parts)
