"""The settings of crishim. The defaults are right for a node with one containerd."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from partage_base.daemon.plugin_host import PluginHostSettings
from partage_base.daemon.settings import Setting
from partage_base.keyring import KeyFolders
from partage_crishim.rules.confinement import CONTAINER_HANDLERS, VM_HANDLERS
from partage_plugins.api.nvidia import HANDLERS

OF_GPU_OPERATOR: Final = "gpu-operator"
"""The namespace in NVIDIA's helm instructions. If unused, anyone who may create namespaces can take this name."""


class CrishimSettings(PluginHostSettings, frozen=True, kw_only=True):
    """Settings of the proxy between kubelet and the container runtime."""

    listen: Annotated[
        Path, Setting("Socket that kubelet is pointed to; systemd's own, where it hands one over, goes before it.")
    ] = Path("/run/partage/crishim.sock")
    runtime: Annotated[Path, Setting("Socket of the container runtime, which kubelet was pointed to before.")] = Path(
        "/run/containerd/containerd.sock"
    )
    keys: Annotated[Path, Setting("Folder of the public keys that allocations are believed by.")] = KeyFolders.at_root(
        Path("/")
    ).public
    pod_resources: Annotated[Path, Setting("Socket on which kubelet tells what its own device manager gave.")] = Path(
        "/var/lib/kubelet/pod-resources/kubelet.sock"
    )
    enforce: Annotated[
        Literal["strict", "advisory"],
        Setting(
            "strict refuses part of a card whose limits no plugin enforces; advisory starts it all the same, but "
            "nothing whose memory should move and does not."
        ),
    ] = "strict"
    allow_unconfined: Annotated[
        bool,
        Setting("Give part of a card also to containers in which limits cannot hold: privileged, hostPID, VMs."),
    ] = False
    container_handlers: Annotated[
        tuple[str, ...],
        Setting("Runtime handlers, with wildcards, known to share the node's kernel, as the default and NVIDIA's do."),
    ] = CONTAINER_HANDLERS
    vm_handlers: Annotated[
        tuple[str, ...], Setting("Runtime handlers, with wildcards, that do not, whatever other settings say.")
    ] = VM_HANDLERS
    guard: Annotated[
        Literal["auto", "on", "off"],
        Setting(
            "Keep cards from containers that were given none; auto does unless there are no cards, no driver, and no "
            "runtime handler of NVIDIA's."
        ),
    ] = "auto"
    trusted_namespaces: Annotated[
        tuple[str, ...], Setting("Namespaces whose pods the guard lets reach any card: monitoring, device plugins.")
    ] = ()
    profile: Annotated[
        Literal["none", "gpu-operator"],
        Setting("gpu-operator trusts that namespace; NVIDIA's operator elsewhere goes into trusted_namespaces."),
    ] = "none"
    nvidia_handlers: Annotated[
        tuple[str, ...],
        Setting("Runtime handlers that run NVIDIA's runtime, besides those that the container runtime says do."),
    ] = tuple(sorted(HANDLERS))
    mount_roots: Annotated[
        tuple[Path, ...],
        Setting("More folders of the node from which plugins may mount into containers, besides the usual ones."),
    ] = ()
    drain_s: Annotated[
        float,
        Meta(ge=0, le=600),
        Setting(
            "Seconds for calls that are open when a stop begins; a create may take its time, a log stream never ends."
        ),
    ] = 10.0
    plugin_deadline_s: Annotated[
        float, Meta(gt=0, le=60), Setting("Seconds for all node plugins on one container; kubelet itself waits 120.")
    ] = 2.0
    plugin_memory_bytes: Annotated[
        int, Meta(ge=64 << 20), Setting("What the plugins' process may allocate; one that leaks meets this.")
    ] = 512 << 20

    @property
    def trusted(self) -> frozenset[str]:
        """All namespaces whose pods may reach any card."""
        return frozenset((*self.trusted_namespaces, *([OF_GPU_OPERATOR] if self.profile == "gpu-operator" else ())))

    def __post_init__(self) -> None:
        if self.drain_s >= self.stop_deadline_s:
            raise ValueError(
                f"drain_s is {self.drain_s:g} and stop_deadline_s {self.stop_deadline_s:g}; "
                "the drain must end before the stop must"
            )
