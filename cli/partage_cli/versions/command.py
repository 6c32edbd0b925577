"""The command line of ``partage versions``."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from partage_base.kube import ApiServer, Lease, Node, leases_path, nodes_path, pods_path
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.main import SUBCOMMANDS
from partage_cli.own_pods import OwnPod
from partage_cli.tables import as_json
from partage_cli.versions.running import PART_OF, Running, as_table, running

_AT_A_TIME: Final = 500


@click.command(
    name="versions",
    short_help=SUBCOMMANDS["versions"].summary,
    epilog="""\b
Examples:
  partage versions
  partage versions -o json | jq '.daemons[] | select(.daemon == "crishim")'
""",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@KUBECONFIG
@NAMESPACE
def command(*, output: str, kubeconfig: Path | None, namespace: str) -> None:
    """Show which versions of partage's daemons run where: a line for each version of each daemon.

    The scheduler that leads, and the daemons of a node, say theirs themselves; the installer's is the version to which
    it brought the node. DRA driver and SharePods' controller go by the tags of their images.
    """
    found = ask_cluster(kubeconfig, functools.partial(daemons, namespace=namespace))
    click.echo(as_json({"daemons": found}) if output == "json" else as_table(found), nl=False)


async def daemons(server: ApiServer, *, namespace: str) -> tuple[Running, ...]:
    """Raises `KubeError` if the API server doesn't answer."""
    nodes, leases, pods = await asyncio.gather(
        server.list(nodes_path(), Node, limit=_AT_A_TIME),
        server.list(leases_path(namespace), Lease, limit=_AT_A_TIME),
        server.list(pods_path(namespace), OwnPod, labels=PART_OF, limit=_AT_A_TIME),
    )
    return running(nodes.items, leases.items, pods.items, datetime.now(UTC))
