"""Running versions as the daemons report them: on Leases, on Nodes, and by their image tags. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from partage_base.kube import Lease, Node
from partage_base.version import VERSION
from partage_cli.nodes.reports import heartbeat
from partage_cli.own_pods import OwnPod
from partage_cli.rollout.node_state import members_of
from partage_cli.tables import age, few, printable, table
from partage_plugins.api.keys import INVENTORY, VERSIONS
from partage_scheduler.published import of_lease

PART_OF: Final = "app.kubernetes.io/part-of=partage"
_NAME: Final = "app.kubernetes.io/name"
_BY_IMAGE: Final = {"partage-dra": "dra", "partage-sharepods": "sharepods", "partage-ui": "ui"}
"""Daemons that don't report their version, by the label of their pods."""
_HEADER: Final = ("DAEMON", "VERSION", "WHERE")
_UNKNOWN: Final = "unknown"


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one daemon."""

    daemon: str
    version: str
    where: tuple[str, ...]
    """Nodes, or the process that is the leader."""


def running(
    nodes: Iterable[Node], leases: Iterable[Lease], pods: Iterable[OwnPod], now: datetime
) -> tuple[Running, ...]:
    """Sorted by daemon, then by version."""
    found: dict[tuple[str, str], list[str]] = {("command line", VERSION): ["here"]}
    by_name = {lease.metadata.name: lease for lease in leases}
    for daemon, version, where in (
        *_leading(by_name.values()),
        *_on_nodes(tuple(nodes), by_name, now),
        *_of_pods(pods),
    ):
        found.setdefault((daemon, version), []).append(where)
    return tuple(
        Running(daemon=daemon, version=version, where=tuple(where))
        for (daemon, version), where in sorted(found.items())
    )


def as_table(found: Iterable[Running]) -> str:
    return table(_HEADER, ((each.daemon, printable(each.version), few(each.where)) for each in found))


def _leading(leases: Iterable[Lease]) -> Iterator[tuple[str, str, str]]:
    for lease in leases:
        if (said := of_lease(lease)) is not None:
            yield "scheduler", said.version or _UNKNOWN, f"{said.by}, which leads"


def _on_nodes(nodes: tuple[Node, ...], leases: dict[str, Lease], now: datetime) -> Iterator[tuple[str, str, str]]:
    for node in nodes:
        name, lease = node.metadata.name, leases.get(node.metadata.name)
        if INVENTORY in node.metadata.annotations:
            beat = heartbeat(lease, now)
            silent = f" ({age(beat.age_s)} ago)" if beat is not None and beat.stale else ""
            said = _said("" if lease is None else lease.metadata.annotations.get(VERSIONS, ""))
            for daemon, version in (said or {"advertiser": _UNKNOWN}).items():
                yield daemon, version, f"{name}{silent}"
    for member in members_of(nodes):
        if member.told is not None:
            yield "installer", member.told.version, member.name


def _said(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split(","))
    return {name: version for name, _, version in pairs if name and version}


def _of_pods(pods: Iterable[OwnPod]) -> Iterator[tuple[str, str, str]]:
    for pod in pods:
        daemon = _BY_IMAGE.get(pod.metadata.labels.get(_NAME, ""))
        if daemon is not None and pod.spec.containers:
            yield daemon, pod.spec.version or _UNKNOWN, pod.spec.node_name or pod.metadata.name
