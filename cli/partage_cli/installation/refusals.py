"""Why a node can't be switched, with what to use there instead. Pure.

The oldest Kubernetes and containerd are those that `make rig-matrix` tests: older ones pass on what newer ones refuse,
and nothing here is tested with them. A version that can't be parsed does not count as too old.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from partage_cli.doctor.endpoint import path_of

RUNTIMES: Final = ("/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock")
INSTEAD: Final = "share its cards by DRA with CDI, or by NRI"
_BY_SYSTEM: Final[Mapping[str, str]] = {
    "bottlerocket": "Bottlerocket writes kubelet's configuration itself, and its root is read-only",
    "cos": "GKE writes kubelet's configuration itself at each boot",
    "talos": "Talos runs kubelet by itself and lets nobody change its runtime endpoint",
}
"""By ID of os-release."""
_OF_GKE: Final = "/home/kubernetes/bin/kubelet"
OLDEST_KUBERNETES: Final = (1, 34)
OLDEST_CONTAINERD: Final = (1, 6)
_CONTAINERD: Final = "containerd://"
_RELEASE: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?!\d)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class SwitchFacts:
    endpoint: str
    """Kubelet's present endpoint."""
    endpoint_next: str
    """Kubelet's endpoint after its next start."""
    crishim: str
    """crishim's socket."""
    runtime: str
    """The runtime socket in crishim's settings."""
    runtime_is_said: bool
    """The operator set it, in partage.toml."""
    read_only: tuple[str, ...] = ()
    """Read-only places that we must write to."""
    library_folder: str = ""
    """The folder of the containers' library, if it is read-only; another one can be configured."""
    has_machine: bool = False
    """Whether `partage up` manages this host without Kubernetes."""


def managed(system: str, kubelet: str = "") -> str:
    """Why a host can't be switched, by ID of os-release and kubelet's program; empty if it can be."""
    why = _BY_SYSTEM["cos"] if kubelet == _OF_GKE else _BY_SYSTEM.get(system)
    return f"{why}: {INSTEAD}" if why else ""


def refusals(facts: SwitchFacts) -> Iterator[str]:
    """Reasons against a switch, each with what to do; none: the node can be switched."""
    if facts.has_machine:
        yield "`partage up` shares this host's cards without Kubernetes: `partage down --purge` first"
    for folder in facts.read_only:
        yield f"{folder} is read-only; where it stays so, {INSTEAD}"
    if facts.library_folder:
        yield (
            f"{facts.library_folder} is read-only, where the containers' library shall lie; name another place, such "
            'as library_folder = "/opt/partage-library" under [broker] in /etc/partage/partage.toml'
        )
    now, following = path_of(facts.endpoint), path_of(facts.endpoint_next)
    if now != following:
        yield (
            f"kubelet speaks to {now} and will speak to {following} when it starts again: "
            "restart it, so that it is known to work with what its files say"
        )
    elif now == path_of(facts.crishim):
        yield (
            f"kubelet speaks to {now} already, and not by this command; "
            "point it to the container runtime, restart it, and come again"
        )
    elif now.endswith("crio.sock"):
        yield (
            "kubelet takes its statistics from CRI-O by the name of the socket, which crishim's has not: "
            f"use containerd, or {INSTEAD}"
        )
    elif now.endswith("cri-dockerd.sock"):
        yield f"kubelet speaks to Docker by {now}, which was never tried here: use containerd, or {INSTEAD}"
    elif now not in RUNTIMES and not (facts.runtime_is_said and now == facts.runtime):
        yield (
            f"kubelet speaks to {now}, which is no socket of containerd that is known here: another proxy may stand "
            "there; take it out, or, if it is the runtime's own, set runtime under [crishim] and [broker] in "
            "/etc/partage/partage.toml"
        )


class NodeInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Versions that kubelet reported to the API server; empty if it has not."""

    kubelet_version: str = ""
    container_runtime_version: str = ""
    """With the runtime's name before it, as in `containerd://2.4.2`."""


def too_old(info: NodeInfo) -> Iterator[str]:
    """Reasons why the node's versions are too old, each with what to do."""
    if _is_before(info.kubelet_version, OLDEST_KUBERNETES):
        yield _sentence(f"kubelet {info.kubelet_version}", "Kubernetes", OLDEST_KUBERNETES)
    name, found, version = info.container_runtime_version.partition(_CONTAINERD)
    if found and not name and _is_before(version, OLDEST_CONTAINERD):
        yield _sentence(f"containerd {version}", "containerd", OLDEST_CONTAINERD)


def shown(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"


def _is_before(version: str, oldest: tuple[int, int]) -> bool:
    found = _RELEASE.match(version)
    return found is not None and (int(found[1]), int(found[2])) < oldest


def _sentence(has: str, what: str, oldest: tuple[int, int]) -> str:
    return f"this node has {has}, and the oldest {what} that is supported is {shown(oldest)}: upgrade the node first"
