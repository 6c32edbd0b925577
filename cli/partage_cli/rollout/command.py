"""The words and options of ``partage rollout``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import click
import msgspec

from partage_base.kube import ApiServer, NotFound
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.main import FAILED, FOUND_WRONG, SUBCOMMANDS
from partage_cli.rollout.fleet import Fleet
from partage_cli.rollout.progress import RolloutProgress, as_json, as_line, as_table, progress
from partage_cli.rollout.slots import Slots

DAEMON_SET: Final = "partage-installer"
LEASE_S: Final = 60.0
"""As the installers have it, unless a Lease says more."""
_AGAIN_S: Final = 2.0


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
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    *, output: str, version: str | None, wait: bool, within_s: float, kubeconfig: Path | None, namespace: str
) -> int:
    """Show how far the nodes with the label partage.dev/install are.

    Nodes are worked on one after the other: a canary, then a few at a time. After a failure no other node begins, and
    the exit code is 3. To go on, mend the node, or take its annotation partage.dev/installed away, or roll out another
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
    return FAILED if wait and not is_over else 0


async def followed(
    server: ApiServer, namespace: str, version: str | None, *, within_s: float
) -> tuple[RolloutProgress, bool]:
    """What there is once it is over or the time is, and whether it is over; raises `KubeError`."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    fleet = Fleet(server, Slots(server, namespace=namespace, lease_s=LEASE_S), percent=1)
    said = ""
    while True:
        members, held = await fleet.members(), await fleet.slots.held()
        found = progress(members, held, version or await image_version(server, namespace))
        is_over = found.stopped is not None or (bool(found.nodes) and found.is_done)
        if is_over or loop.time() >= until:
            return found, is_over
        if (line := as_line(found)) != said:
            click.echo(line, err=True)
            said = line
        await asyncio.sleep(_AGAIN_S)


async def image_version(server: ApiServer, namespace: str) -> str | None:
    """The tag of the installer's image, which is its version; None where it has only a digest, or is not there."""
    try:
        found = await server.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{DAEMON_SET}", _DaemonSet)
    except NotFound:
        return None
    images = [container.image for container in found.spec.template.spec.containers]
    name = images[0].partition("@")[0].rpartition("/")[2] if images else ""
    return name.partition(":")[2] or None


class _Image(msgspec.Struct, frozen=True):
    image: str = ""


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Image, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DaemonSetSpec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _DaemonSet(msgspec.Struct, frozen=True):
    spec: _DaemonSetSpec = _DaemonSetSpec()
