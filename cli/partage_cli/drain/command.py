"""The command line of ``partage drain``."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from partage_base.daemon import logs
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.drain.question import drained
from partage_cli.drain.shown import as_text, notes
from partage_cli.main import FOUND_WRONG, SUBCOMMANDS
from partage_cli.tables import as_json


@click.command(
    name="drain",
    short_help=SUBCOMMANDS["drain"].summary,
    epilog="""\b
Examples:
  partage drain --dry-run gpu-7
  partage drain --dry-run gpu-7 && kubectl drain gpu-7 --ignore-daemonsets
  partage drain --dry-run gpu-7 -o json | jq '.pods[] | select(.state == "does not fit")'
""",
)
@click.argument("node")
@click.option("--dry-run", is_flag=True, help="Say who would leave, and change nothing.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@KUBECONFIG
@NAMESPACE
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path, *, node: str, dry_run: bool, output: str, kubeconfig: Path | None, namespace: str
) -> int:
    """Say which pods with cards would leave NODE if it were drained, and whether each fits elsewhere now.

    It reads the cluster once, takes all of them off the node, and places them one after the other as the scheduler
    that leads would, so that two don't take the same room. Nothing is preempted for them, and pods without cards stay
    where they are. It changes nothing: `kubectl drain` drains. The exit code is 3 where a pod fits nowhere.
    """
    if not dry_run:
        raise click.UsageError(f"this only says who would leave, with --dry-run; to drain: kubectl drain {node}")
    logs.configure("partage", level="warning", log_format="text")
    question = functools.partial(drained, node=node, namespace=namespace, root=root)
    found = ask_cluster(kubeconfig, question, deadline_s=30.0)
    click.echo(as_json(found) if output == "json" else as_text(found), nl=False)
    for note in notes(found):
        click.echo(note, err=True)
    return 0 if found.all_fit else FOUND_WRONG
