"""The command line of ``partage support-bundle``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from partage_base.daemon import logs
from partage_base.files import write_whole
from partage_base.kube import Access, BadAccess
from partage_cli.clusters import KUBECONFIG, NAMESPACE
from partage_cli.main import SUBCOMMANDS
from partage_cli.progress import waiting
from partage_cli.support import cluster, here
from partage_cli.support.archive import Bundle
from partage_cli.tables import printable
from partage_plugins.errors import Refused


@click.command(
    name="support-bundle",
    short_help=SUBCOMMANDS["support-bundle"].summary,
    epilog="""\b
Examples:
  sudo partage support-bundle
  kubectl partage support-bundle --output partage.tar.gz --no-logs
""",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write, which must not be there.  [default: partage-support-TIME.tar.gz here]",
)
@click.option("--no-logs", is_flag=True, help="Neither the journal of partage's units nor the logs of its pods.")
@KUBECONFIG
@NAMESPACE
@click.pass_obj
def command(root: Path, *, output: Path | None, no_logs: bool, kubeconfig: Path | None, namespace: str) -> None:
    """Write what helps others to find a fault into one file: findings, versions, settings, states and logs.

    What is in it is chosen by name: never Secrets, tokens, private keys, environments, or what pods run. Sentences are
    taken without what they quote. Names of nodes, namespaces and pods are in it. It looks at this machine, as root at
    all of it, and at the cluster where one can be reached. What could not be had is named on stderr and in bundle.json.
    """
    logs.configure("partage", level="error", log_format="text")
    at = datetime.now(UTC)
    name = f"partage-support-{at:%Y%m%dT%H%M%SZ}"
    path = output or Path(f"{name}.tar.gz")
    if path.exists():
        raise Refused(f"{path} is there already: name another file with --output")
    bundle = Bundle()
    with waiting("looking at this machine"):
        here.gather(bundle, root, kubeconfig=kubeconfig, namespace=namespace, logs=not no_logs)
    if _has_cluster(kubeconfig, bundle):
        cluster.gather(bundle, kubeconfig=kubeconfig, namespace=namespace, logs=not no_logs)
    write_whole(path, bundle.packed(at, name))
    for what, why in bundle.missing.items():
        click.echo(f"not in it: {printable(what)}: {printable(why)}", err=True)
    click.echo(str(path))


def _has_cluster(kubeconfig: Path | None, bundle: Bundle) -> bool:
    try:
        Access.find(kubeconfig)
    except BadAccess as error:
        bundle.lacks("cluster", str(error))
        return False
    return True
