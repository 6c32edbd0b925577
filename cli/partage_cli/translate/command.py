"""The words and options of ``partage translate``."""

from __future__ import annotations

import os
from typing import BinaryIO, Final

import click
import msgspec.yaml

from partage_base.daemon import logs
from partage_base.daemon.plugins import load_all
from partage_cli.machine.pods.yaml_text import read_mappings
from partage_cli.main import SUBCOMMANDS
from partage_cli.translate.manifests import pods_in, translate
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.entry_points import blocked_names, installed
from partage_plugins.sides.scheduler import SchedulerSide
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES
from partage_scheduler.decision import Ledger

_MOST_DOCUMENTS: Final = 256


@click.command(
    name="translate",
    short_help=SUBCOMMANDS["translate"].summary,
    epilog="""\b
Examples:
  partage translate pods.yaml > native.yaml
  kubectl get pod train -o yaml | partage translate -
""",
)
@click.argument("file", type=click.File("rb"))
@click.option("--scheduler-name", default="partage-scheduler", show_default=True, help="Of pods that are translated.")
def command(file: BinaryIO, *, scheduler_name: str) -> None:
    """Print manifests with what pods ask for in the native dialect; - reads what is piped in.

    Pods, and templates of what makes pods, are read by the dialects that are installed here, with the variables of
    the scheduler: PARTAGE_NVIDIA_GPU says who reads nvidia.com/gpu. What asks in no other dialect is printed as it is,
    without its comments. What is printed asks for the same; what the native dialect can't say is refused,
    or told on stderr where it hardly matters.
    """
    logs.configure("partage", level="error", log_format="text")
    registry = load_all(scheduler_hooks, installed(SCHEDULER_GROUP), blocked=blocked_names(os.environ))
    reads = SchedulerSide(registry, Ledger()).requests
    documents = read_mappings(file.read(MAX_ANNOTATION_BYTES + 1), "manifest", most=_MOST_DOCUMENTS)
    for document in documents:
        for pod in pods_in(document):
            for note in translate(pod, reads, scheduler=scheduler_name) or ():
                click.echo(note, err=True)
    click.echo("---\n".join(msgspec.yaml.encode(document).decode() for document in documents), nl=False)
