"""The oldest Kubernetes and containerd that a node may have: the oldest that `make rig-matrix` tries. Pure.

Older ones hand on what newer ones refuse, and nothing here is tried with them. A version that is not understood is none
of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

OLDEST_KUBERNETES: Final = (1, 34)
OLDEST_CONTAINERD: Final = (1, 6)
_CONTAINERD: Final = "containerd://"
_RELEASE: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?!\d)", re.ASCII)


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
