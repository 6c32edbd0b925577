"""The command line of ``partage doctor``, and the list of its checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.resolution import resolve
from partage_base.daemon.sources import DEFAULT_PATH, read_toml
from partage_cli.clusters import KUBECONFIG, NAMESPACE
from partage_cli.doctor import (
    broker,
    claims,
    cluster,
    containerd,
    daemons,
    driver,
    elsewhere,
    fleet,
    inventory,
    kubelet,
    machine,
    system,
    turns,
)
from partage_cli.doctor.checks import Check, run
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode
from partage_cli.doctor.output import tell
from partage_cli.machine.places import DRIVER
from partage_cli.machine.setup.decision import read_decision
from partage_cli.main import SUBCOMMANDS
from partage_cli.progress import waiting
from partage_crishim.settings import CrishimSettings

CHECKS: Final[Mapping[str, Check]] = {
    "driver": driver.driver,
    "kubelet-endpoint": kubelet.endpoint,
    "crishim": daemons.crishim,
    "crishim-condition": daemons.crishim_condition,
    "kubelet-speaks": daemons.kubelet_speaks,
    "broker": broker.broker,
    "library": broker.library,
    "time": turns.turns,
    "advertiser": daemons.advertiser,
    "inventory": inventory.inventory,
    "device-plugin": inventory.native,
    "claims": claims.claims,
    "runtime": containerd.container_runtime,
    "runtime-variables": containerd.nvidia_runtime,
    "keys": daemons.keys,
    "private-keys": daemons.private_keys,
    "kernel": system.kernel,
    "selinux": system.selinux,
    "api": cluster.cluster,
}
_CHECKS_OF_A_MACHINE: Final[Mapping[str, Check]] = {
    **{name: CHECKS[name] for name in ("driver", "broker", "library", "time", "advertiser", "inventory", "kernel")},
    "agent": machine.agent,
    "engines": machine.engines,
}
"""Checks for a machine with Docker or Podman: no kubelet and no signatures, but an agent and engines."""


@click.command(
    name="doctor",
    short_help=SUBCOMMANDS["doctor"].summary,
    epilog="""\b
Examples:
  sudo partage doctor
  partage doctor -o wide --kubeconfig ~/.kube/config
  partage doctor -o json | jq '.findings[] | select(.status == "wrong")'
  kubectl partage doctor --fleet
""",
)
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json"]), default="table", show_default=True)
@click.option(
    "--driver-root",
    type=click.Path(path_type=Path),
    envvar="PARTAGE_DRIVER_ROOT",
    help="Where the driver is installed, below the root.  [default: as the daemons are told]",
)
@click.option("--node-name", metavar="NAME", help="As kubelet registered it.  [default: as the daemons are told]")
@click.option(
    "--fleet", "is_fleet", is_flag=True, help="All nodes of the cluster, by what the API server and they tell."
)
@KUBECONFIG
@NAMESPACE
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    output: str,
    driver_root: Path | None,
    node_name: str | None,
    is_fleet: bool,
    kubeconfig: Path | None,
    namespace: str,
) -> int:
    """Look for what is wrong on this node, and say what to do.

    Changes nothing. Run it as root, or it tells what it could not see. On a machine that is no node it looks at the
    cluster instead, unless --node-name is said. The exit code is 3 where something is wrong; warnings, and what could
    not be checked, leave it at 0. With --fleet it looks at all nodes of the cluster, by what they
    tell it and not on them.
    """
    if is_fleet:
        return tell([*fleet.findings(kubeconfig, namespace)], output)
    with waiting("looking at this node"):
        found = look(root, driver_root=driver_root, node_name=node_name, kubeconfig=kubeconfig, namespace=namespace)
    return tell(found, output)


def look(
    root: Path, *, driver_root: Path | None, node_name: str | None, kubeconfig: Path | None, namespace: str
) -> list[Finding]:
    """All findings about this machine; about the cluster, if it is not a node."""
    settings, mistakes = _crishim_settings(root)
    decision = read_decision(root)
    node = LocalNode(
        root=root,
        name=node_name or settings.node_name,
        driver_root=driver_root or (Path(DRIVER) if decision and decision.simulated else settings.driver_root),
        crishim=settings,
        kubeconfig=kubeconfig,
        namespace=namespace,
    )
    if decision is None and node_name is None and elsewhere.is_no_node(node):
        return list(elsewhere.findings(node))
    return [*mistakes, *run(CHECKS if decision is None else _CHECKS_OF_A_MACHINE, node)]


def _crishim_settings(root: Path) -> tuple[CrishimSettings, list[Finding]]:
    """The settings of crishim in the node's file; flags and variables of its unit are not known here."""
    path = root / DEFAULT_PATH
    try:
        toml = read_toml(path, required=False)
        return resolve(CrishimSettings, "crishim", toml=toml, environment={}, flags={}).settings, []
    except BadConfiguration as error:
        about = About("configuration", (str(path),))
        return CrishimSettings(), [
            about.wrong(each, do="mend it: crishim honours no allocation so, and the other daemons do not start")
            for each in error.mistakes
        ]
