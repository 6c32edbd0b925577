"""Arguments and options of ``partage rollout``."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from partage_base.kube import ApiServer, Lease, Node, NotAllowed, NotFound, leases_path, nodes_path, pods_path
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.main import FAILED, FOUND_WRONG, SUBCOMMANDS
from partage_cli.nodes.reports import of_cluster
from partage_cli.own_pods import OwnPod, OwnPodSpec
from partage_cli.progress import tell
from partage_cli.rollout.lease import RolloutLease
from partage_cli.rollout.node_state import INSTALL, members_of
from partage_cli.rollout.progress import (
    DAEMON_SET,
    INSTALLERS,
    RolloutProgress,
    as_line,
    as_table,
    progress,
    why_silent,
)
from partage_cli.tables import as_json
from partage_cli.watch import watchable

LEASE_S: Final = 60.0
"""The installers' default; the Lease may have a longer one."""
_AGAIN_S: Final = 2.0
_AT_A_TIME: Final = 500


@click.command(
    name="rollout",
    short_help=SUBCOMMANDS["rollout"].summary,
    epilog="""\b
Examples:
  kubectl label node gpu-1 gpu-2 partage.dev/install=yes
  partage rollout --wait
  partage rollout -o json | jq '.nodes[] | select(.state == "failed")'
  kubectl annotate node gpu-1 partage.dev/installed-      # try a node that failed again
""",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--version", "version", help="The version it goes to.  [default: the tag of the installer's image]")
@click.option("--wait", is_flag=True, help="Until every node is as asked, or the roll-out stops.")
@click.option(
    "--within",
    "within_s",
    type=click.FloatRange(0, 86400),
    default=3600,
    show_default=True,
    help="Seconds to wait at most.",
)
@KUBECONFIG
@NAMESPACE
@watchable
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    *, output: str, version: str | None, wait: bool, within_s: float, kubeconfig: Path | None, namespace: str
) -> int:
    """Show how far the nodes with the label partage.dev/install are, and why those that are not in force are not.

    Nodes are worked on one after the other, a labelled canary first. After a failure no other node begins, and the
    exit code is 3. To go on, mend the node, or take its annotation partage.dev/installed away, or roll out another
    version.
    """

    async def asked(server: ApiServer) -> tuple[RolloutProgress, bool]:
        return await followed(server, namespace, version, within_s=within_s if wait else 0.0)

    found, is_over = ask_cluster(kubeconfig, asked)
    if output == "json":
        click.echo(as_json(found), nl=False)
    elif found.nodes:
        click.echo(as_table(found), nl=False)
    click.echo(as_line(found), err=True)
    if found.stopped is not None:
        return FOUND_WRONG
    return FAILED if wait and not (is_over and found.nodes) else 0


async def followed(
    server: ApiServer, namespace: str, version: str | None, *, within_s: float
) -> tuple[RolloutProgress, bool]:
    """The progress when the roll-out is over or the time is, and whether it is over; raises `KubeError`."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    lease = RolloutLease(server, namespace=namespace, lease_s=LEASE_S)
    said = ""
    while True:
        found = await _looked(server, lease, namespace, version or await image_version(server, namespace))
        is_over = found.stopped is not None or found.is_done
        if is_over or loop.time() >= until:
            return found, is_over
        if (line := as_line(found)) != said:
            tell(line)
            said = line
        await asyncio.sleep(_AGAIN_S)


async def _looked(server: ApiServer, lease: RolloutLease, namespace: str, version: str | None) -> RolloutProgress:
    """Reads nodes before the Lease: a node that no longer holds it then has given it back since, or is silent."""
    nodes = await server.list(nodes_path(), Node, labels=INSTALL, limit=_AT_A_TIME)
    holder = await lease.holder()
    leases = await server.list(leases_path(namespace), Lease, limit=_AT_A_TIME)
    report = of_cluster(nodes.items, leases.items, datetime.now(UTC))
    silent = await _installers(server, namespace)
    return progress(members_of(nodes.items), holder, version, why_not=report.why_not, why_silent=silent)


async def _installers(server: ApiServer, namespace: str) -> Callable[[str], str]:
    """A function that returns why a node's installer has reported nothing."""
    try:
        pods = await server.list(pods_path(namespace), OwnPod, labels=INSTALLERS, limit=_AT_A_TIME)
    except NotAllowed:
        return lambda _: "its installer's pod may not be seen with these credentials"
    return functools.partial(why_silent, pods=pods.items, namespace=namespace)


async def image_version(server: ApiServer, namespace: str) -> str | None:
    """The tag of the installer's image, which is its version; None if it has only a digest, or does not exist."""
    try:
        found = await server.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{DAEMON_SET}", _DaemonSet)
    except NotFound:
        return None
    return found.spec.template.spec.version


class _Template(msgspec.Struct, frozen=True):
    spec: OwnPodSpec = OwnPodSpec()


class _DaemonSetSpec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _DaemonSet(msgspec.Struct, frozen=True):
    spec: _DaemonSetSpec = _DaemonSetSpec()
