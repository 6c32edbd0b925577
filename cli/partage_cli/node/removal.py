"""The words and options of ``partage node uninstall``, and how it has the node's pods leave."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Final

import click

from partage_base.kube import ApiServer, KubeError
from partage_cli.clusters import ask_cluster
from partage_cli.installation import journal
from partage_cli.installation.errors import PodsStay
from partage_cli.installation.host import Host
from partage_cli.installation.look import Site
from partage_cli.installation.removal.drain import Drain
from partage_cli.installation.removal.uninstall import Uninstall
from partage_cli.installation.services import services_of
from partage_cli.installation.switch import take_everything_back
from partage_cli.installation.versions.daemons import kubelet_speaks
from partage_cli.node.rest import look, wait_until
from partage_cli.pauses import pause

_PAUSED_WITHIN_S: Final = 30.0


@click.command(
    short_help="Take partage off this node.",
    epilog="""\b
Examples:
  partage node uninstall --dry-run
  partage node uninstall --timeout 3600
""",
)
@click.option("--dry-run", is_flag=True, help="Print what would go, then exit.")
@click.option(
    "--timeout",
    "within_s",
    type=click.FloatRange(0, 86400),
    default=600,
    show_default=True,
    help="Seconds for the pods that hold cards to leave, as their budgets allow.",
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Who evicts pods.  [default: kubelet itself]")
@click.option(
    "--force",
    is_flag=True,
    help="Wait for no pod. Containers run on; a process that asks for more memory gets none, time is not metered, and "
    "a container that starts again has no card.",
)
@click.pass_obj
def uninstall(root: Path, *, dry_run: bool, within_s: float, kubeconfig: Path | None, force: bool) -> None:
    """Take partage off this node: pods with cards leave, kubelet gets its runtime back, files go.

    The cards are paused first, so that no pod comes. Pods leave through the Eviction API, which respects their
    budgets. What an operator wrote below /etc/partage stays.
    """
    host = Host(root, services_of(root), _say)
    if dry_run:
        looked = journal.read(root)
        for change in Uninstall(host, looked, leave=_nothing, switch_off=_nothing).foreseen():
            click.echo(str(change))
        return
    with journal.kept(root) as kept:
        leave = functools.partial(_leave, host, kept, kubeconfig, within_s)
        switch_off = functools.partial(take_everything_back, host, kept)
        script = Uninstall(host, kept, leave=leave, switch_off=switch_off).carry_out(forced=force)
    _say("removed; the programs go last")
    os.execv("/bin/sh", ("/bin/sh", str(script)))  # noqa: S606  it must need nothing of the tree that it removes


def _leave(host: Host, kept: journal.Journal, kubeconfig: Path | None, within_s: float) -> None:
    """Asked as kubelet where nothing else is said: it may evict the pods of its own node, and no others."""
    site = kept.facts("look", Site)
    if site is None and kubelet_speaks(host):
        raise PodsStay(
            "kubelet speaks through crishim, and not by `partage node switch-on`: drain the node, give kubelet its "
            "container runtime back as docs/crishim.md says, and say it again"
        )
    if site is None or ("save" not in kept.states and not kubelet_speaks(host)):
        return  # no pod here holds a card by us
    pause(host.root, "partage is being uninstalled")
    wait_until(lambda seen: seen.rests, functools.partial(look, host.root), _PAUSED_WITHIN_S)

    async def drained(server: ApiServer) -> None:
        await Drain(server, site.node, say=host.say).run(within_s)

    access = kubeconfig or (host.path(site.kubeconfig) if site.kubeconfig else None)
    try:
        ask_cluster(access, drained)
    except KubeError as error:
        raise PodsStay(
            f"{error}; without the API server no pod can be asked to leave. Say --kubeconfig, or --force, which "
            "`partage node uninstall --help` explains"
        ) from error


def _nothing() -> None: ...


def _say(line: str) -> None:
    click.echo(f"partage: {line}", err=True)
