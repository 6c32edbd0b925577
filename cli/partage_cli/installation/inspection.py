"""Checks whether this node can be switched: its system, its kubelet, and the files that configure it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.resolution import DEFAULT, resolve
from partage_base.daemon.sources import DEFAULT_PATH, read_toml
from partage_base.kube.errors import KubeError
from partage_cli.doctor import containerd, driver, system
from partage_cli.doctor.checks import Check, run
from partage_cli.doctor.endpoint import path_of
from partage_cli.doctor.findings import Severity
from partage_cli.doctor.local_node import LocalNode, Unseen, text_of
from partage_cli.doctor.variables import environment_file
from partage_cli.installation.edits import in_force, spots
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.host import Host
from partage_cli.installation.kubelet import kubelet_of
from partage_cli.installation.libraries import library_folder
from partage_cli.installation.nodes import own_node
from partage_cli.installation.places import UNITS
from partage_cli.installation.refusals import INSTEAD, NodeInfo, SwitchFacts, managed, refusals, too_old
from partage_cli.machine.places import MACHINE_FILE
from partage_crishim.settings import CrishimSettings

_WRITTEN_TO: Final = ("/opt", "/etc", f"/{UNITS}", "/var/lib")
_CHECKS: Final[Mapping[str, Check]] = {
    "driver": driver.driver,
    "runtime": containerd.container_runtime,
    "runtime-variables": containerd.nvidia_runtime,
    "kernel": system.kernel,
    "selinux": system.selinux,
}
"""The doctor's checks that work before anything of ours is installed."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What later steps must know of the node's former state."""

    node: str
    kubelet: str
    """Its systemd service."""
    runtime: str
    """The socket of the container runtime."""
    kubeconfig: str
    """Kubelet's own; empty: none is known."""
    static_pods: str
    """Empty: kubelet has no static pods."""


def look(host: Host) -> Site:
    """Raises `UnfitNode` with every reason."""
    if why := managed(system := _system(host)):
        raise UnfitNode(why)
    settings, is_said = _settings(host.root)
    kubelet = kubelet_of(LocalNode(root=host.root, name="", crishim=settings))
    if why := managed(system, kubelet.program):
        raise UnfitNode(why)
    now, following = (in_force(each).endpoint for each in (kubelet.now, kubelet.next))
    library = library_folder(host.root)
    facts = SwitchFacts(
        endpoint=now,
        endpoint_next=following,
        crishim=str(settings.listen),
        runtime=str(settings.runtime),
        runtime_is_said=is_said,
        read_only=tuple(each for each in _WRITTEN_TO if _is_read_only(host.path(each))),
        library_folder=str(library) if _is_read_only(library) else "",
        has_machine=host.path(MACHINE_FILE).exists(),
    )
    if wrong := list(refusals(facts)):
        raise UnfitNode("; ".join(wrong))
    for spot in spots(kubelet.next, kubelet.files):
        if _is_read_only(Path(spot.path)):
            raise UnfitNode(f"{spot.path}, by which kubelet is told its runtime, is read-only: {INSTEAD}")
    site = Site(
        node=host.node_name or kubelet.node,
        kubelet=kubelet.service,
        runtime=path_of(now),
        kubeconfig=kubelet.kubeconfig,
        static_pods=kubelet.static_pods,
    )
    if wrong := list(too_old(asyncio.run(_node_info(host, site)))):
        raise UnfitNode("; ".join(wrong))
    return site


def warnings(host: Host, site: Site) -> Iterator[str]:
    """The doctor's findings before anything of ours is installed; none prevents the switch."""
    settings = msgspec.structs.replace(crishim_of(host.root), runtime=site.runtime)
    node = LocalNode(root=host.root, name=site.node, driver_root=settings.driver_root, crishim=settings)
    for finding in run(_CHECKS, node):
        if finding.status in {Severity.WARNING, Severity.WRONG}:
            yield f"{finding.check}: {finding.found}; {finding.advice}"


def crishim_of(root: Path) -> CrishimSettings:
    """From the node's configuration file; raises `UnfitNode`."""
    return _settings(root)[0]


async def _node_info(host: Host, site: Site) -> NodeInfo:
    """Versions from the API server; kubelet's program is not started here, since any process may have its name.

    What the API server does not report stays unknown; it must answer before kubelet is touched.
    """
    try:
        return (await own_node(host, site.kubeconfig, site.node)).status.node_info
    except (KubeError, UnfitNode):
        return NodeInfo()


def _settings(root: Path) -> tuple[CrishimSettings, bool]:
    """The settings, and whether the file names the runtime's socket."""
    try:
        toml = read_toml(root / DEFAULT_PATH, required=False)
        found = resolve(CrishimSettings, "crishim", toml=toml, environment={}, flags={})
    except BadConfiguration as error:
        raise UnfitNode("; ".join(map(str, error.mistakes))) from None
    return found.settings, found.origins["runtime"] != DEFAULT


def _system(host: Host) -> str:
    text = text_of(host.path("etc/os-release"))
    return "" if isinstance(text, Unseen) else environment_file(text).get("ID", "")


def _is_read_only(path: Path) -> bool:
    """Whether its nearest existing folder is mounted read-only."""
    while not path.exists():
        path = path.parent
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
