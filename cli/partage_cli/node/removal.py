"""Arguments and options of ``partage node uninstall``, and how the node's pods and advertiser are removed."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import click

from partage_base.kube import ApiServer, KubeError
from partage_cli.clusters import ask_cluster
from partage_cli.installation import journal
from partage_cli.installation.drain import Drain, prepared_claims, withdraw
from partage_cli.installation.errors import PodsStay
from partage_cli.installation.host import Host
from partage_cli.installation.inspection import Site
from partage_cli.installation.uninstall import foreseen
from partage_cli.installation.uninstall import uninstall as take_off
from partage_cli.installation.versions.daemons import ADVERTISER, kubelet_speaks
from partage_cli.node.installation import DRY_RUN, changing, foresee, host_of, say
from partage_cli.node.rest import RestState, look, wait_until
from partage_cli.pauses import pause

_PAUSED_WITHIN_S: Final = 30.0
_ADVERTISER_ENDS_WITHIN_S: Final = 45.0
"""A deleted pod has half a minute to end."""


@click.command(
    short_help="Take partage off this node.",
    epilog="""\b
Examples:
  partage node uninstall --dry-run
  partage node uninstall --timeout 3600
""",
)
@DRY_RUN
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
    if dry_run:
        foresee(foreseen(host_of(root), journal.read(root)))
        return
    with changing(root) as (host, kept):
        leave = functools.partial(_leave, host, kept, kubeconfig, within_s)
        script = take_off(host, kept, leave=leave, forced=force)
    say("removed; the programs go last")
    os.execv("/bin/sh", ("/bin/sh", str(script)))  # noqa: S606  it must need nothing of the tree that it removes


def _leave(host: Host, kept: journal.Journal, kubeconfig: Path | None, within_s: float) -> None:
    """Drains the node as kubelet, unless a kubeconfig is given: it may evict only the pods of its own node."""
    site = kept.facts("look", Site)
    if site is None and kubelet_speaks(host):
        raise PodsStay(
            "kubelet speaks through crishim, and not by `partage node switch-on`: drain the node, give kubelet its "
            "container runtime back as docs/crishim.md says, and say it again"
        )
    if site is None or ("save" not in kept.states and not kubelet_speaks(host)):
        return  # no pod here has a card from us
    access = kubeconfig or (host.path(site.kubeconfig) if site.kubeconfig else None)
    claims = functools.partial(prepared_claims, host.root)
    look_now = functools.partial(look, host.root)
    pause(host.root, "partage is being uninstalled")
    if not wait_until(lambda seen: seen.rests, look_now, _PAUSED_WITHIN_S).advertiser_runs:
        _ask(access, lambda server: withdraw(server, site.node))  # nothing else prevents new pods
    _ask(access, lambda server: Drain(server, site.node, say=host.say, claims=claims).run(within_s))
    end_advertiser(host, look_now)
    _ask(access, lambda server: withdraw(server, site.node))


def end_advertiser(host: Host, look_now: Callable[[], RestState], within_s: float = _ADVERTISER_ENDS_WITHIN_S) -> None:
    """Stops the advertiser, which would publish everything again; raises `PodsStay`."""
    if host.services.is_active(ADVERTISER.unit):
        host.services.stop(ADVERTISER.unit)
    if wait_until(lambda seen: not seen.advertiser_runs, look_now, within_s).advertiser_runs:
        raise PodsStay(
            "the advertiser of this node runs in a pod, and would tell of its cards again: label the node "
            "partage.dev/install=off, or keep the DaemonSet partage-advertiser off it, and say it again. The cards "
            "stay paused until `partage node resume`"
        )


def _ask(access: Path | None, question: Callable[[ApiServer], Awaitable[None]]) -> None:
    try:
        ask_cluster(access, question)
    except KubeError as error:
        raise PodsStay(
            f"{error}; without the API server no pod can be asked to leave. Say --kubeconfig, or --force, which "
            "`partage node uninstall --help` explains"
        ) from error
