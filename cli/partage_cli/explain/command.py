"""The command line of ``partage explain``."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from partage_base.daemon import logs
from partage_cli.clusters import KUBECONFIG, NAMESPACE, POD, POD_NAMESPACE, ask_cluster
from partage_cli.explain.question import Question, answer
from partage_cli.explain.shown import as_text
from partage_cli.main import FOUND_WRONG, SUBCOMMANDS
from partage_cli.tables import as_json
from partage_cli.watch import watchable


@click.command(
    name="explain",
    short_help=SUBCOMMANDS["explain"].summary,
    epilog="""\b
Examples:
  partage explain train-0
  kubectl partage explain team-a/train-0 --all-nodes
  partage explain -n team-a train-0 -o json | jq '.pod.explained.helps'
""",
)
@POD
@POD_NAMESPACE
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--all-nodes", is_flag=True, help="Every node, and not only those with the fewest things in the way.")
@KUBECONFIG
@NAMESPACE
@click.pass_obj
@watchable
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    pod: str,
    pod_namespace: str,
    output: str,
    all_nodes: bool,
    kubeconfig: Path | None,
    namespace: str,
) -> int:
    """Say why a pod is not placed: what is in the way on each node and card, and what would make it fit.

    It looks at the whole cluster once, decides as the scheduler that leads says that it does, and changes nothing.
    Allocations of other pods are verified by the cluster's keys. What could not be seen is said on stderr. The exit
    code is 3 where the pod is refused or fits nowhere, or waits for a scheduler that is not ours.
    """
    logs.configure("partage", level="warning", log_format="text")
    first, _, rest = pod.rpartition("/")
    question = Question(namespace=first or pod_namespace, name=rest, partage=namespace, root=root)
    found = ask_cluster(kubeconfig, functools.partial(answer, question=question), deadline_s=30.0)
    click.echo(as_json(found) if output == "json" else as_text(found, all_nodes=all_nodes), nl=False)
    for note in found.notes:
        click.echo(note, err=True)
    return FOUND_WRONG if found.pod.state in {"refused", "waits", "not ours"} else 0
