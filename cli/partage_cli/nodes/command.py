"""The command line of ``partage nodes``."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from partage_base.daemon import logs
from partage_base.daemon.settings import host_name
from partage_base.kube import ApiServer, Lease, Listing, Node, NotFound, leases_path, node_path, nodes_path
from partage_cli.clusters import KUBECONFIG, NAMESPACE, NO_NODE, ask_cluster
from partage_cli.main import FOUND_WRONG, SUBCOMMANDS, colour, lacking
from partage_cli.nodes import happened
from partage_cli.nodes.reports import Report, of_cluster, of_node
from partage_cli.nodes.shown import as_table
from partage_cli.tables import as_json, as_yaml, few
from partage_cli.watch import watchable
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.errors import DecodeError, Refused


@click.command(
    name="nodes",
    short_help=SUBCOMMANDS["nodes"].summary,
    epilog="""\b
Examples:
  partage nodes
  kubectl partage nodes -o wide --node gpu-7
  partage nodes -o json | jq '.nodes[].cards[] | select(.health != "ok")'
  partage nodes --local
  partage nodes --watch
  partage nodes --pods --node gpu-7
  partage nodes --events
""",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "json", "yaml"]), default="table", show_default=True
)
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--local", "only_here", is_flag=True, help="This node alone, by its own file: asks no API server.")
@click.option("--pods", is_flag=True, help="Who holds what of which card, and what is left of it.")
@click.option("--events", is_flag=True, help="What partage's daemons reported in the last hour.")
@KUBECONFIG
@NAMESPACE
@click.pass_obj
@watchable
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    output: str,
    node: str | None,
    only_here: bool,
    pods: bool,
    events: bool,
    kubeconfig: Path | None,
    namespace: str,
) -> int:
    """Show the cluster's cards: where they are, how they are, and who may hand them out.

    It reads what the advertisers wrote onto the nodes. HEARTBEAT is how long ago the node's advertiser said that this
    still holds; a stale one may tell of the past. WHY says why the node is not in force, or the card not well.
    Inventories that cannot be read are named on stderr, and the exit code is then 3. With --pods it shows who holds
    what of each card instead, as the scheduler counts it, and which are unused. With --events it shows what the
    daemons reported of nodes, cards and pods in the last hour, the latest last; with --node of that node itself.
    """
    if pods and events:
        raise click.UsageError("--pods and --events are two tables: ask for one")
    if only_here and (pods or events):
        raise click.UsageError("--pods and --events ask the API server; on a node `partage top` shows who holds cards")
    if pods:
        _show_holders(root, kubeconfig, namespace, node, output)
        return 0
    if events:
        _show_events(kubeconfig, node, output)
        return 0
    report = _here(root, node) if only_here else _everywhere(kubeconfig, namespace, node)
    _print(report, output)
    _tell(report, local=only_here)
    return FOUND_WRONG if report.faults else 0


def _everywhere(kubeconfig: Path | None, namespace: str, node: str | None) -> Report:
    return ask_cluster(kubeconfig, functools.partial(cluster, namespace=namespace, node=node))


def _show_holders(root: Path, kubeconfig: Path | None, namespace: str, node: str | None, output: str) -> None:
    try:
        from partage_cli.nodes import holders  # noqa: PLC0415 - only this needs numpy
    except ModuleNotFoundError as error:
        raise lacking("nodes --pods", error) from error
    logs.configure("partage", level="warning", log_format="text")
    question = functools.partial(holders.held_cards, namespace=namespace, root=root, node=node)
    found = ask_cluster(kubeconfig, question, deadline_s=30.0)
    if output in {"json", "yaml"}:
        click.echo(as_json(found) if output == "json" else as_yaml(found), nl=False)
    elif found.cards:
        click.echo(holders.as_table(found), nl=False)
    for note in found.notes if found.cards else (*found.notes, "no node tells of cards"):
        click.echo(note, err=True)


def _show_events(kubeconfig: Path | None, node: str | None, output: str) -> None:
    found = ask_cluster(kubeconfig, functools.partial(happened.last_hour, node=node), deadline_s=30.0)
    if output in {"json", "yaml"}:
        click.echo(as_json(found) if output == "json" else as_yaml(found), nl=False)
    elif found.events:
        click.echo(happened.as_table(found, datetime.now(UTC)), nl=False)
    else:
        click.echo("partage's daemons reported nothing in the last hour", err=True)
    if found.earlier:
        click.echo(f"and {found.earlier} more before these", err=True)


def _here(root: Path, node: str | None) -> Report:
    try:
        return local(root, node or host_name())
    except FileNotFoundError:
        raise Refused(f"{root / INVENTORY_FILE} is not there; does partage-advertiser run on this node?") from None


def _print(report: Report, output: str) -> None:
    if output == "json":
        click.echo(as_json(report), nl=False)
    elif output == "yaml":
        click.echo(as_yaml(report), nl=False)
    elif report.nodes:
        click.echo(as_table(report, wide=output == "wide"), nl=False, color=colour())


def _tell(report: Report, *, local: bool) -> None:
    """Report what is not in the table."""
    for node, fault in report.faults.items():
        where = INVENTORY_FILE if local else "its annotation partage.dev/inventory"
        click.echo(f"partage: node {node}: {where} cannot be read: {fault}", err=True)
    if report.without_inventory:
        click.echo(f"without an inventory: {few(report.without_inventory)}", err=True)
    if not report.nodes and not report.faults:
        click.echo(NO_NODE, err=True)


_AT_A_TIME: Final = 500


async def cluster(server: ApiServer, *, namespace: str, node: str | None) -> Report:
    """All nodes, or one; raises `KubeError`."""
    nodes, leases = await asyncio.gather(
        _nodes(server, node), server.list(leases_path(namespace), Lease, limit=_AT_A_TIME)
    )
    unread = {each.key[1]: each.why for each in nodes.undecodable}
    return of_cluster(nodes.items, leases.items, datetime.now(UTC), unread=unread)


def local(root: Path, name: str) -> Report:
    """This node only, without an API server; raises `OSError`."""
    with (root / INVENTORY_FILE).open("rb") as file:
        text = file.read(MAX_ANNOTATION_BYTES + 1)
    try:
        return Report(nodes=(of_node(name, text, None),))
    except DecodeError as error:
        return Report(faults={name: str(error)})


async def _nodes(server: ApiServer, name: str | None) -> Listing[Node]:
    if name is not None:
        try:
            return Listing((await server.get(node_path(name), Node),), "")
        except NotFound:
            raise Refused(f"there is no node {name}; `kubectl get nodes` has their names") from None
    return await server.list(nodes_path(), Node, limit=_AT_A_TIME)
