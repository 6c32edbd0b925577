"""What stands in the way of a switch, in words that say what to use there instead. Pure.

The oldest Kubernetes and containerd are those that `make rig-matrix` tries: older ones hand on what newer ones refuse,
and nothing here is tried with them. A version that is not understood is none of them.
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
    """That kubelet has."""
    endpoint_next: str
    """That kubelet will have when it starts again."""
    crishim: str
    """crishim's socket."""
    runtime: str
    """What crishim is told to speak to."""
    runtime_is_said: bool
    """By the operator, in partage.toml."""
    read_only: tuple[str, ...] = ()
    """Places that we must write to and that nothing can be written to."""
    library_folder: str = ""
    """Where the containers' library shall lie, if nothing can be written there; another place can be said."""
    has_machine: bool = False
    """Whether `partage up` has made this host a machine of its own."""


def managed(system: str, kubelet: str = "") -> str:
    """Why a host cannot be switched, by ID of os-release and kubelet's program; empty where it may be."""
    why = _BY_SYSTEM["cos"] if kubelet == _OF_GKE else _BY_SYSTEM.get(system)
    return f"{why}: {INSTEAD}" if why else ""


def refusals(facts: SwitchFacts) -> Iterator[str]:
    """Each is one sentence and what to do; none: the node can be switched."""
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
    """What kubelet tells the API server; empty: it has not."""

    kubelet_version: str = ""
    container_runtime_version: str = ""
    """With the runtime's name before it, as in `containerd://2.4.2`."""


def too_old(info: NodeInfo) -> Iterator[str]:
    """Each is one sentence and what to do; none: the node is as new as it must be."""
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
