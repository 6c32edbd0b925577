"""The installer's settings. Every default is right for our DaemonSet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from partage_base.daemon.api_server import Kubeconfig
from partage_base.daemon.settings import CommonSettings, Setting


class InstallerSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the daemon that installs partage on its node."""

    kubeconfig: Kubeconfig = None
    namespace: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"),
        Setting("Namespace of partage, where the Lease is by which nodes take turns."),
    ] = "partage-system"
    host: Annotated[Path, Setting("Where the host's root is mounted.")] = Path("/host")
    tree: Annotated[
        Path | None,
        Setting("Folder of the version that is installed, with its MANIFEST; by default that of this program."),
    ] = None
    keys: Annotated[Path, Setting("Folder of the public keys that the host gets: the ConfigMap partage-keys.")] = Path(
        "/etc/partage-keys"
    )
    node_settings: Annotated[
        Path, Setting("Folder whose partage.toml the host gets, if there is one: the ConfigMap partage-node.")
    ] = Path("/etc/partage-node")
    percent: Annotated[int | None, Setting("Not used any more: nodes are worked on one at a time.")] = None
    work_within_s: Annotated[
        float,
        Meta(ge=10, le=7200),
        Setting("Seconds that one command on the host may take; then it is killed, and the node has failed."),
    ] = 900.0
    lease_s: Annotated[
        float,
        Meta(ge=3, le=3600),
        Setting("A node that is at work and has not renewed its Lease for so long is silent, which stops the others."),
    ] = 60.0
    ask_every_s: Annotated[
        float,
        Meta(gt=0, le=600),
        Setting("Seconds between looks at what a node waits for; at least 50 ms for each node of the roll-out."),
    ] = 5.0
    look_every_s: Annotated[
        float,
        Meta(gt=0, le=3600),
        Setting("Seconds between looks at the host; what the cluster says is heard of at once."),
    ] = 60.0
    lapse_s: Annotated[
        float,
        Meta(ge=0, le=3600),
        Setting("Seconds that a host may be out of force, as while it starts, before the node has failed."),
    ] = 180.0
