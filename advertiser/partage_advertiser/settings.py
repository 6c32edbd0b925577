"""The settings of the advertiser. The defaults are right for our DaemonSet.

The health rules and the pools of cards are set by variables of their plugin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from partage_base.daemon.api_server import Kubeconfig
from partage_base.daemon.settings import CommonSettings, Setting


class AdvertiserSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the daemon that publishes a node's devices."""

    cluster: Annotated[
        bool, Setting("Whether there is an API server; false on a machine of its own, where only the file is written.")
    ] = True
    kubeconfig: Kubeconfig = None
    namespace: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"),
        Setting("Namespace of partage, where each node has a Lease as its heartbeat."),
    ] = "partage-system"
    pod_resources: Annotated[Path, Setting("Socket on which kubelet tells what its own device manager gave.")] = Path(
        "/var/lib/kubelet/pod-resources/kubelet.sock"
    )
    look_every_s: Annotated[
        float,
        Meta(ge=1, le=60),
        Setting("Seconds between looks at the devices; faults are told at once."),
    ] = 5.0
    heartbeat_s: Annotated[
        float,
        Meta(ge=1, le=60),
        Setting("Seconds between renewals of the Lease; after four of them without one the node takes no new pods."),
    ] = 10.0
    ready_within_s: Annotated[
        float,
        Meta(ge=6, le=600),
        Setting("A daemon of this node counts as in force while its sign of life is younger; they come every 5 s."),
    ] = 20.0
    plugin_deadline_s: Annotated[
        float, Meta(gt=0, le=600), Setting("A plugin that takes longer than this hangs, and ends the process.")
    ] = 30.0
