"""Checks every node without a shell on it: by Nodes, Leases, Events, and the answers of the nodes' brokers."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from partage_base.kube import ApiServer, KubeError, events_path, pods_path
from partage_cli.clusters import ask_cluster
from partage_cli.doctor.cluster import or_error
from partage_cli.doctor.elsewhere import DEADLINE_S, ListedCluster, judged, listed, not_asked
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.warnings import REPORTERS, DaemonEvent, warnings
from partage_cli.keys.objects import KEYS, public_of
from partage_cli.keys.store import KeyStore
from partage_cli.nodes.reports import NodeReport
from partage_cli.own_pods import OwnPod
from partage_cli.rollout.node_state import Member, members_of
from partage_cli.tables import few, short_id
from partage_cli.top.nodes import AT_ONCE, WITHIN_S, AllReports, ask_nodes
from partage_cli.versions.running import PART_OF, Running, running

_AT_A_TIME: Final = 500
_STATUS: Final = re.compile(r": [45]\d\d\b")
"""The HTTP status in an error message. Silent nodes are grouped by it, because pods' names make the messages differ."""


class FleetFacts(NamedTuple):
    """The gathered facts. A request that was denied is stored as its error and hides nothing else."""

    cluster: ListedCluster
    pods: Sequence[OwnPod] | KubeError
    keys: frozenset[str] | KubeError
    events: Sequence[DaemonEvent] | KubeError


def findings(kubeconfig: Path | None, namespace: str) -> Iterator[Finding]:
    """Findings about all nodes; queries the brokers last, because silent nodes make that slow."""
    try:
        fleet = ask_cluster(kubeconfig, lambda server: _read(server, namespace), deadline_s=DEADLINE_S)
    except KubeError as error:
        yield not_asked(error)
        return
    question = functools.partial(ask_nodes, namespace=namespace, only=())
    try:
        told: AllReports | KubeError = ask_cluster(kubeconfig, question, deadline_s=WITHIN_S, connections=AT_ONCE)
    except KubeError as error:
        told = error
    yield from judged_fleet(fleet, told, datetime.now(UTC))


def judged_fleet(fleet: FleetFacts, told: AllReports | KubeError, now: datetime) -> Iterator[Finding]:
    """Judge each part by itself, in the order of the checks on a node."""
    seen = fleet.cluster
    yield from judged(seen.report, seen.labelled, seen.scheduler)
    yield from _cards(seen.report.nodes)
    yield from _brokers(told)
    yield from _keys(seen.report.nodes, fleet.keys)
    yield from _rollout(members_of(seen.nodes))
    pods = () if isinstance(fleet.pods, KubeError) else fleet.pods
    yield from _versions(running(seen.nodes, seen.leases, pods, now))
    if isinstance(fleet.events, KubeError):
        yield About("events").unknown(str(fleet.events))
    else:
        yield from warnings(fleet.events, now)


def _cards(nodes: Iterable[NodeReport]) -> Iterator[Finding]:
    count, sick = 0, 0
    for node in nodes:
        about = About("inventory", (f"node {node.node}",))
        count += len(node.cards)
        for card in (card for card in node.cards if card.state != "ok"):
            sick += 1
            words = f"node {node.node}: card {card.index} ({short_id(card.id)}) is {card.health}"
            if card.is_lost:
                yield about.wrong(words, do="`nvidia-smi` there; pods that have it must be deleted")
            else:
                yield about.warning(words, do="docs/advertiser.md#health says what each reason needs")
    if not sick:
        yield About("inventory").ok(f"{count} cards, all well")


def _brokers(told: AllReports | KubeError) -> Iterator[Finding]:
    if isinstance(told, KubeError):
        yield About("broker").unknown(str(told))
        return
    silent: dict[str, list[str]] = {}
    for node, why in told.silent.items():
        status = _STATUS.search(why)
        silent.setdefault(status[0] if status else why, []).append(node)
    for nodes in silent.values():
        about = About("broker", tuple(f"node {node}" for node in nodes))
        words = f"not answering on {few(nodes)}: {told.silent[nodes[0]]}"
        yield about.unknown(words, do="docs/isolation.md#of-a-whole-cluster")
    found = [(node, each) for node, answer in told.told.items() for each in answer.findings]
    for node, each in found:
        about = About("broker", (f"node {node}",))
        yield about.wrong(f"node {node}: {each}", do=f"`partage top --node {node}`; docs/isolation.md has its meaning")
    if told.told and not found:
        yield About("broker").ok(f"{len(told.told)} answer, and found nothing wrong")


def _keys(nodes: Iterable[NodeReport], known: frozenset[str] | KubeError) -> Iterator[Finding]:
    """Pods signed with a key that their node doesn't trust do not start there."""
    if isinstance(known, KubeError):
        yield About("keys-told").unknown(str(known))
        return
    if not known:
        yield About("keys-told").unknown(f"the cluster has no public keys in its ConfigMap {KEYS}")
        return
    told = {node.node: known - {*node.keys} for node in nodes if node.keys}
    for node, lacking in told.items():
        if lacking:
            about = About("keys-told", (f"node {node}",))
            words = f"node {node} does not trust {', '.join(sorted(lacking))}, which the cluster has"
            yield about.warning(
                words, do="ask again in a minute; if it stays, copy the public half there: docs/keys.md"
            )
    if told and not any(told.values()):
        yield About("keys-told").ok(f"{len(told)} nodes trust every key of the cluster")


def _rollout(members: Sequence[Member]) -> Iterator[Finding]:
    for each in members:
        if each.told is not None and each.told.state == "failed":
            about = About("rollout", (f"node {each.name}",))
            words = f"node {each.name}: the installation of {each.told.version} failed: {each.told.why}"
            yield about.wrong(words, do="`partage rollout` says what goes on, and how to try again")


def _versions(found: Iterable[Running]) -> Iterator[Finding]:
    daemons: dict[str, list[Running]] = {}
    for each in found:
        daemons.setdefault(each.daemon, []).append(each)
    several = {daemon: told for daemon, told in daemons.items() if len(told) > 1}
    for daemon, told in several.items():
        words = "; ".join(f"{each.version} on {few(each.where)}" for each in told)
        yield About("versions").warning(f"{daemon}: {words}", do="`partage rollout` says how far an upgrade is")
    if not several:
        yield About("versions").ok("one version of each daemon")


async def _read(server: ApiServer, namespace: str) -> FleetFacts:
    """Raises `KubeError` if not even the nodes can be read."""
    cluster = await listed(server, namespace)
    pods, keys, events = await asyncio.gather(
        or_error(server.list(pods_path(namespace), OwnPod, labels=PART_OF, limit=_AT_A_TIME)),
        or_error(KeyStore(server, namespace).config_map(KEYS)),
        or_error(_events(server)),
    )
    return FleetFacts(
        cluster,
        pods if isinstance(pods, KubeError) else pods.items,
        keys if isinstance(keys, KubeError) else frozenset(public_of(keys) if keys is not None else ()),
        events,
    )


async def _events(server: ApiServer) -> Sequence[DaemonEvent]:
    """Warnings of our daemons only: a cluster has many others."""
    fields = (f"type=Warning,reportingComponent={each}" for each in REPORTERS)
    found = await asyncio.gather(
        *(server.list(events_path(), DaemonEvent, fields=each, limit=_AT_A_TIME) for each in fields)
    )
    return [event for events in found for event in events.items]
