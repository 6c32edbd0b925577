"""This node in the API server: its Node, its annotation and its heartbeat; and whether the clocks agree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec

from partage_base.keyring import load_public_keys
from partage_base.kube import (
    ApiServer,
    BadAccess,
    KubeError,
    Lease,
    Node,
    NotAllowed,
    NotFound,
    lease_path,
    leases_path,
    node_path,
)
from partage_cli.clusters import Identity, ask_cluster, identity
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, status_of, text_of
from partage_cli.nodes.reports import Heartbeat, heartbeat, keys_told, of_cluster
from partage_cli.tables import age
from partage_plugins.api.keys import INVENTORY as ANNOTATION
from partage_plugins.api.keys import KEYS
from partage_plugins.api.places import INVENTORY_FILE

A = TypeVar("A")

_DRY_RUN: Final = "?dryRun=All"
_KUBELETS: Final = "/etc/kubernetes/kubelet.conf"
_DEADLINE_S: Final = 3.0
_CLOCK_SLACK_S: Final = 5.0
_SEE_LOG: Final = "see advertiser: its log says why it cannot write"
_ACCOUNT: Final = "partage-advertiser"


@dataclass(frozen=True)
class ClusterFacts:
    """The API server's answers, or the error in place of each."""

    identity: Identity | KubeError
    node: Node | KubeError
    lease: Lease | KubeError
    renewal: KubeError | None
    """Why the heartbeat could not be written, by a dry run."""
    now: datetime


def cluster(node: LocalNode) -> Iterator[Finding]:
    """Query with the kubeconfig's identity; without one as this node's kubelet, which may read its own Node."""
    about = About("api", (f"node {node.name}",))
    try:
        facts = _asked(node)
    except BadAccess as error:
        yield about.unknown(str(error), do="say --kubeconfig, or ask inside the advertiser's pod")
        return
    keys = load_public_keys(node.path(node.crishim.keys)).keys
    yield from judged(facts, node, text_of(node.path(INVENTORY_FILE)), keys)


def judged(facts: ClusterFacts, node: LocalNode, file: str | Unseen, keys: Iterable[str]) -> Iterator[Finding]:
    if isinstance(facts.identity, KubeError) and isinstance(facts.node, KubeError):
        yield About("api").wrong(str(facts.identity), do="is the API server up, and do the credentials hold?")
        return
    who = facts.identity.user if isinstance(facts.identity, Identity) else "somebody"
    yield _node(facts.node, who, node)
    if isinstance(facts.node, Node):
        yield annotation(facts.node.metadata.annotations.get(ANNOTATION), file, node)
        yield in_force(facts.node, facts.lease, facts.now)
    yield _heartbeat(facts, node)
    yield _renewal(facts.renewal, who, node)
    if isinstance(facts.lease, Lease):
        yield keys_known(facts.lease, sorted(keys), node)
    if isinstance(facts.identity, Identity):
        yield clock(facts.identity.at, facts.now)


def annotation(written: str | None, file: str | Unseen, node: LocalNode) -> Finding:
    """The annotation must equal the inventory file that crishim reads."""
    about = About("annotation", (f"node {node.name}: {ANNOTATION}", str(node.path(INVENTORY_FILE))))
    if isinstance(file, Unseen):
        return about.unknown(str(file))
    if written is None:
        return about.wrong(
            "the node has none, so it takes no shared pods", do="see advertiser: its log says why it cannot write"
        )
    if written.strip() != file.strip():
        return about.wrong(
            "the cluster was told something else than crishim",
            do=f"ask again in some seconds; if it stays, {_SEE_LOG}",
        )
    return about.ok("says what the file on this node says")


def in_force(node: Node, lease: Lease | KubeError, now: datetime) -> Finding:
    """Whether the node is in force, by the rules of `partage nodes` and `partage rollout`."""
    name = node.metadata.name
    about = About("in-force", (f"node {name}",))
    if isinstance(lease, KubeError) and not isinstance(lease, NotFound):
        return about.unknown(str(lease))
    leases = [lease] if isinstance(lease, Lease) else []
    why = of_cluster([node], leases, now).why_not(name)
    if why:
        return about.wrong(
            f"the cluster sees node {name} as not in force: {why}", do="see what is wrong above, on the node"
        )
    return about.ok(f"the cluster sees node {name} as in force")


def keys_known(lease: Lease, here: Sequence[str], node: LocalNode) -> Finding:
    """The Lease must name the keys that the node trusts: retiring a key depends on it."""
    about = About("keys-told", (f"lease {node.namespace}/{node.name}: {KEYS}",))
    told = keys_told(lease)
    if not told:
        return about.warning(
            "the heartbeat says of no key that the node trusts it", do="see crishim-condition and keys"
        )
    if here and told != tuple(here):
        return about.warning(
            f"the cluster was told that this node trusts {', '.join(told)}, and it has {', '.join(here)}",
            do="ask again in some seconds; if it stays, see crishim, which reads them, and advertiser",
        )
    return about.ok(f"the cluster knows that this node trusts {', '.join(told)}")


def clock(there: str, here: datetime) -> Finding:
    """A wrong clock makes heartbeats look stale and certificates expired."""
    about = About("clock", ("creationTimestamp of an answer",))
    try:
        off_s = (here - datetime.fromisoformat(there).astimezone(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return about.unknown("the API server did not say its time")
    if abs(off_s) > _CLOCK_SLACK_S:
        return about.wrong(f"this node's clock is {off_s:+.0f} s off the API server's", do="set up NTP: `timedatectl`")
    return about.ok("agrees with the API server's")


def _node(found: Node | KubeError, who: str, node: LocalNode) -> Finding:
    about = About("api", (f"node {node.name}",))
    if isinstance(found, Node):
        return about.ok(f"{who} reads node {node.name}")
    if isinstance(found, NotFound):
        return about.wrong(f"the cluster has no node {node.name}", do="say --node-name: as kubelet registered it")
    return about.wrong(str(found), do="see the rules of the service account in manifests/")


def _heartbeat(facts: ClusterFacts, node: LocalNode) -> Finding:
    about = About("heartbeat", (f"lease {node.namespace}/{node.name}",))
    if isinstance(facts.lease, NotFound):
        return about.wrong("there is none, so the node takes no shared pods", do="see advertiser")
    if isinstance(facts.lease, KubeError):
        return about.unknown(str(facts.lease))
    beat: Heartbeat | None = heartbeat(facts.lease, facts.now)
    if beat is None or beat.stale:
        since = "never" if beat is None else f"{age(beat.age_s)} ago"
        return about.wrong(f"last renewed {since}, so the node takes no shared pods", do="see advertiser, and clock")
    return about.ok(f"renewed {age(beat.age_s)} ago")


def _renewal(error: KubeError | None, who: str, node: LocalNode) -> Finding:
    about = About("heartbeat-write", (f"lease {node.namespace}/{node.name}, without effect",))
    if error is None:
        return about.ok(f"{who} may write it")
    if isinstance(error, NotAllowed) and who != f"system:serviceaccount:{node.namespace}:{_ACCOUNT}":
        return about.unknown(f"{who} may not, and need not", do="ask inside the advertiser's pod, to see what it may")
    return about.wrong(str(error), do="see the rules of the service account in manifests/")


def _asked(node: LocalNode) -> ClusterFacts:
    async def question(server: ApiServer) -> ClusterFacts:
        return await _facts(server, node)

    try:
        return ask_cluster(node.kubeconfig, question, deadline_s=_DEADLINE_S)
    except BadAccess:
        kubelets = node.path(_KUBELETS)
        if node.kubeconfig is not None or isinstance(status_of(kubelets), Unseen):
            raise
        return ask_cluster(kubelets, question, deadline_s=_DEADLINE_S)


async def _facts(server: ApiServer, node: LocalNode) -> ClusterFacts:
    who, found, lease = await asyncio.gather(
        or_error(identity(server)),
        or_error(server.get(node_path(node.name), Node)),
        or_error(server.get(lease_path(node.namespace, node.name), msgspec.Raw)),
    )
    renewal = await or_error(_renewed(server, node, lease))
    typed = lease if isinstance(lease, KubeError) else msgspec.json.decode(lease, type=Lease)
    return ClusterFacts(who, found, typed, renewal if isinstance(renewal, KubeError) else None, datetime.now(UTC))


async def _renewed(server: ApiServer, node: LocalNode, lease: msgspec.Raw | KubeError) -> object:
    """Renew the Lease as the advertiser does, in a dry run."""
    if isinstance(lease, NotFound):
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node.name, "namespace": node.namespace},
            "spec": {"holderIdentity": node.name},
        }
        return await server.create(leases_path(node.namespace) + _DRY_RUN, body, msgspec.Raw)
    if isinstance(lease, KubeError):
        raise lease
    return await server.replace(lease_path(node.namespace, node.name) + _DRY_RUN, lease, msgspec.Raw)


async def or_error(answer: Awaitable[A]) -> A | KubeError:
    """Turn a `KubeError` into a result, so that one failed request doesn't hide the other answers."""
    try:
        return await answer
    except KubeError as error:
        return error
