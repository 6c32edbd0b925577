"""The doctor on a machine that is not a node: reports that, and checks the cluster instead."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from partage_base.daemon.sources import DEFAULT_PATH
from partage_base.kube import ApiServer, BadAccess, KubeError, Lease, Node, leases_path, nodes_path
from partage_cli.clusters import ask_cluster
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.kubelet import process_of
from partage_cli.doctor.local_node import LocalNode, Unseen, status_of
from partage_cli.installation.places import JOURNAL
from partage_cli.nodes.reports import Report, of_cluster
from partage_cli.rollout.node_state import DesiredState, members_of
from partage_cli.schedulers import KnownScheduler, told
from partage_plugins.api.places import INVENTORY_FILE

_OF_A_NODE: Final = (INVENTORY_FILE, JOURNAL, DEFAULT_PATH, "run/partage", "var/lib/kubelet")
_AT_A_TIME: Final = 500
DEADLINE_S: Final = 30.0


class ListedCluster(NamedTuple):
    nodes: Sequence[Node]
    leases: Sequence[Lease]
    report: Report
    labelled: frozenset[str]
    """Nodes whose label turns partage on."""
    scheduler: KnownScheduler


def is_no_node(node: LocalNode) -> bool:
    """Neither kubelet nor any file of partage is on this machine."""
    there = [status_of(node.path(each)) for each in _OF_A_NODE]
    return all(isinstance(each, Unseen) and each.is_missing for each in there) and process_of(node) is None


def findings(node: LocalNode) -> Iterator[Finding]:
    yield About("here").unknown("this machine is no node: the cluster was looked at instead")
    try:
        seen = ask_cluster(node.kubeconfig, lambda server: listed(server, node.namespace), deadline_s=DEADLINE_S)
    except KubeError as error:
        yield not_asked(error)
        return
    yield from judged(seen.report, seen.labelled, seen.scheduler)


def not_asked(error: KubeError) -> Finding:
    """Why the cluster could not be queried."""
    if isinstance(error, BadAccess):
        return About("api").unknown(str(error), do="say --kubeconfig, or ask on a node")
    return About("api").wrong(str(error), do="is the API server up, and do the credentials hold?")


def judged(report: Report, labelled: frozenset[str], scheduler: KnownScheduler) -> Iterator[Finding]:
    """Judge the scheduler, and every node that has cards or is labelled for partage."""
    about = About("scheduler")
    yield from (about.warning(each, do="look at its pods' logs") for each in scheduler.notes)
    if not scheduler.notes:
        yield about.ok(f"{scheduler.said.scheduler_name} {scheduler.said.version} leads")
    about = About("in-force")
    names = sorted({*labelled, *report.faults, *(each.node for each in report.nodes)})
    for name in names:
        if why := report.why_not(name):
            yield About("in-force", (f"node {name}",)).wrong(
                f"node {name} is not in force: {why}", do=f"`partage doctor` on {name}"
            )
    if not any(map(report.why_not, names)):
        yield about.ok(f"{len(names)} nodes, all in force" if names else "no node has cards or is labelled")


async def listed(server: ApiServer, namespace: str) -> ListedCluster:
    """Raises `KubeError` if the API server doesn't answer."""
    nodes, leases, scheduler = await asyncio.gather(
        server.list(nodes_path(), Node, limit=_AT_A_TIME),
        server.list(leases_path(namespace), Lease, limit=_AT_A_TIME),
        told(server, namespace),
    )
    unread = {each.key[1]: each.why for each in nodes.undecodable}
    report = of_cluster(nodes.items, leases.items, datetime.now(UTC), unread=unread)
    on = frozenset(each.name for each in members_of(nodes.items) if each.wish is DesiredState.ON)
    return ListedCluster(nodes.items, leases.items, report, on, scheduler)
