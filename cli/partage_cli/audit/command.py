"""The command line of ``partage audit``."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from partage_base.daemon import logs
from partage_base.daemon.settings import host_name
from partage_cli.audit import of_cards, of_claims, of_node, of_pods, of_scheduler, of_words, sources
from partage_cli.audit.observation import SeenCluster
from partage_cli.audit.requests import Readings
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.output import tell
from partage_cli.main import SUBCOMMANDS
from partage_cli.schedulers import KnownScheduler, all_told
from partage_plugins.api import AnyKind
from partage_plugins.api.keys import PREFIX
from partage_scheduler.cluster import Asks
from partage_scheduler.core import decider_over


@click.command(
    name="audit",
    short_help=SUBCOMMANDS["audit"].summary,
    epilog="""\b
Examples:
  partage audit
  sudo partage audit --kubeconfig /etc/kubernetes/kubelet.conf
  partage audit -o json | jq '.findings[] | select(.status == "wrong")'
""",
)
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json"]), default="table", show_default=True)
@click.option("--node-name", metavar="NAME", help="This node, as kubelet registered it.  [default: the host's name]")
@click.option(
    "--runtime",
    type=click.Path(path_type=Path),
    default=Path("/run/containerd/containerd.sock"),
    show_default=True,
    help="Socket of this node's container runtime.",
)
@click.option("--scheduler", metavar="URL", help="The metrics page of the scheduler that leads, to compare with.")
@KUBECONFIG
@NAMESPACE
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    output: str,
    node_name: str | None,
    runtime: Path,
    scheduler: str | None,
    kubeconfig: Path | None,
    namespace: str,
) -> int:
    """Compare what everybody says of who has which cards, and name every disagreement.

    Of the cluster: the allocations on pods with their signatures, with what the pods ask for, with what the nodes say
    they have, and with --scheduler with what the scheduler counts. On a node, as root: also the node's own inventory,
    the containers of its runtime, and the broker's limits. It changes nothing. The exit code is 3 where anything is
    wrong; what could not be seen leaves it at 0.
    """
    logs.configure("partage", level="warning", log_format="text")
    schedulers = ask_cluster(kubeconfig, functools.partial(all_told, namespace=namespace))
    kinds = _kinds(schedulers)
    question = functools.partial(sources.cluster, namespace=namespace, kinds=kinds, root=root)
    cluster = ask_cluster(kubeconfig, question, deadline_s=30.0)
    readings, counted = Readings([each.said.scheduler_name for each in schedulers]), list[Finding]()
    for each in schedulers:
        with each.plugins() as registry:
            _, side = decider_over(registry)
            readings.add(cluster, each.said.scheduler_name, side)
            if scheduler and each is schedulers[0]:
                asks = Asks(side.requests, (PREFIX, *side.resources()))
                counted += of_scheduler.scheduler(sources.page_of(scheduler), cluster, asks.of)
    findings = [
        *(About("settings").unknown(note) for each in schedulers for note in each.notes),
        *_of_cluster(cluster, readings.request, _placing(schedulers)),
        *of_words.words(cluster, readings),
        *counted,
        *_of_here(cluster, root, node_name or host_name(), runtime, kinds),
    ]
    return tell(findings, output)


def _kinds(schedulers: Sequence[KnownScheduler]) -> tuple[AnyKind, ...]:
    """The kinds that any of the schedulers knows."""
    found: dict[str, AnyKind] = {}
    for each in schedulers:
        with each.plugins() as registry:
            found |= {kind.name: kind for kind in registry.kinds}
    return tuple(found.values())


def _placing(schedulers: Sequence[KnownScheduler]) -> Sequence[str]:
    """The schedulers' names; empty if one extends kube-schedulers, because then any scheduler name may use partage."""
    is_asked = any(each.said.extends for each in schedulers)
    return () if is_asked else [each.said.scheduler_name for each in schedulers]


def _of_cluster(cluster: SeenCluster, read: of_pods.Read, ours: Sequence[str]) -> Iterator[Finding]:
    yield from of_pods.unread(cluster)
    yield from of_pods.signatures(cluster)
    yield from of_pods.keys(cluster)
    yield from of_pods.requests(cluster, read, ours=ours)
    yield from of_cards.nodes(cluster)
    yield from of_cards.cards(cluster)


def _of_here(
    cluster: SeenCluster, root: Path, name: str, runtime: Path, kinds: tuple[AnyKind, ...]
) -> Iterator[Finding]:
    """The comparisons on this node; none unless it is a node of partage."""
    if not sources.is_node(root):
        return
    here = sources.here(root, name, runtime)
    yield from of_node.inventory(here, cluster, kinds)
    yield from of_node.runtime(here, cluster, kinds)
    yield from of_node.broker(here, cluster, kinds)
    yield from of_claims.claims(here, cluster.claims)
