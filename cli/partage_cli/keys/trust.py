"""Which nodes have the next key, and which pods need the old one: from heartbeats and from signatures. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from partage_base.kube import Meta
from partage_cli.nodes.reports import NodeReport, Report
from partage_plugins.api.keys import SIGNATURE
from partage_plugins.api.names import KeyId
from partage_plugins.codecs import decode_signature
from partage_plugins.errors import PartageError


class SignedPod(msgspec.Struct, frozen=True):
    """The fields of a pod that tell who signed its allocation."""

    metadata: Meta = Meta()


@dataclass(frozen=True)
class Standing:
    """The distribution of a key."""

    have: tuple[str, ...]
    """Nodes in force that report that they trust it."""
    lack: tuple[str, ...]
    """Nodes in force that do not report it, and those whose state can't be decoded."""
    silent: tuple[str, ...]
    """Nodes that were in force, and have no recent heartbeat. They get no pods until they have one."""


def standing(report: Report, key: KeyId) -> Standing:
    live = [node for node in report.nodes if _is_in_force(node)]
    return Standing(
        have=tuple(node.node for node in live if key in node.keys),
        lack=(*(node.node for node in live if key not in node.keys), *report.faults),
        silent=tuple(node.node for node in report.nodes if node.ready.crishim and not _is_in_force(node)),
    )


def needing(pods: Iterable[SignedPod], key: KeyId) -> list[str]:
    """Pods whose allocation the key signed: their containers could not restart without it."""
    return [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods if _signed_by(pod) == key]


def _is_in_force(node: NodeReport) -> bool:
    return node.ready.crishim and node.heartbeat is not None and not node.heartbeat.stale


def _signed_by(pod: SignedPod) -> KeyId | None:
    text = pod.metadata.annotations.get(SIGNATURE)
    if text is None:
        return None
    try:
        return decode_signature(text)[0]
    except PartageError:  # no key verifies it
        return None
