"""The command line of ``partage resize``."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from partage_base.daemon import logs
from partage_base.kube import BadAccess
from partage_cli.clusters import KUBECONFIG, POD, POD_NAMESPACE, ask_cluster
from partage_cli.main import SUBCOMMANDS
from partage_cli.resize.question import ResizeQuestion, resize
from partage_plugins.api.places import OCI_SOCKET
from partage_plugins.errors import Refused

_OF_ENGINES = (
    "containers of Docker and Podman are not resized while they run; start the container again with other "
    "PARTAGE_SHARE and PARTAGE_MEMORY, or lower it by `partage limits`"
)


@click.command(
    name="resize",
    short_help=SUBCOMMANDS["resize"].summary,
    epilog="""\b
Examples:
  partage resize train-0 --share 700 --memory 12Gi
  kubectl partage resize team-a/train-0 --container main --share 300
  partage resize train-0 --memory 40Gi --wait
""",
)
@POD
@POD_NAMESPACE
@click.option("--container", metavar="NAME", help="Of this container; needed where several have shares.")
@click.option("--share", "share_milli", metavar="MILLI", type=int, help="In all, as 700.")
@click.option("--memory", metavar="QUANTITY", help="Over all its cards, as 12Gi.")
@click.option("--wait", is_flag=True, help="Wait until there is room. Interrupted, the wish stands.")
@KUBECONFIG
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    pod: str,
    pod_namespace: str,
    container: str | None,
    share_milli: int | None,
    memory: str | None,
    wait: bool,
    kubeconfig: Path | None,
) -> int:
    """Give a pod that runs another share or another amount of memory, on the cards that it has.

    The scheduler decides on it as on a new pod's request, and signs it; the node puts it in force within 10 s, without
    a restart. What has no room is refused, and nothing changes.
    """
    if share_milli is None and memory is None:
        raise click.UsageError("say --share, --memory, or both")
    logs.configure("partage", level="warning", log_format="text")
    first, _, rest = pod.rpartition("/")
    question = ResizeQuestion(
        namespace=first or pod_namespace,
        name=rest,
        container=container,
        share_milli=share_milli,
        memory=memory,
        waits=wait,
    )
    say = functools.partial(click.echo, err=True)
    try:
        click.echo(ask_cluster(kubeconfig, functools.partial(resize, question=question, say=say)))
    except BadAccess:
        if (root / OCI_SOCKET).exists():
            raise Refused(_OF_ENGINES) from None
        raise
    return 0
