"""The command line of ``partage translate``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import BinaryIO, Final, Literal

import click
import msgspec.yaml

from partage_base.daemon import logs
from partage_base.daemon.plugins import load_all
from partage_cli.main import FAILED, SUBCOMMANDS
from partage_cli.translate.documents import Outcome, Why, to_claims, to_native, to_variables
from partage_cli.translate.manifests import Document, Reader, unread
from partage_cli.translate.yaml_text import read_mappings
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.entry_points import blocked_names, installed
from partage_plugins.rules.words import Lexicon
from partage_scheduler.decision import Ledger

_MOST_DOCUMENTS: Final = 256


@click.command(
    name="translate",
    short_help=SUBCOMMANDS["translate"].summary,
    epilog="""\b
Examples:
  partage translate pods.yaml > native.yaml
  partage translate --to dra pods.yaml > claims.yaml
  partage translate --to podman pods.yaml | podman --runtime partage kube play -
  kubectl get pod train -o yaml | partage translate -
""",
)
@click.argument("file", type=click.File("rb"))
@click.option(
    "--to",
    type=click.Choice(("native", "dra", "podman")),
    default="native",
    show_default=True,
    help="Our keys, claims, or variables for one machine.",
)
@click.option("--scheduler-name", default="partage-scheduler", show_default=True, help="Of pods that are translated.")
def command(file: BinaryIO, *, scheduler_name: str, to: Literal["native", "dra", "podman"]) -> int:
    """Print manifests with what pods ask for in the native dialect, or as claims; - reads what is piped in.

    Pods, and templates of what makes pods, are read by the dialects that are installed here, with the variables of
    the scheduler: PARTAGE_NVIDIA_GPU says who reads nvidia.com/gpu. What asks in no other dialect is printed as it is,
    without its comments. What is printed asks for the same; what can't be said is refused, or told on stderr where
    it hardly matters.

    What was done with each document is told on stderr. The exit code is 1 where none asks for cards in any dialect.

    With --to dra pods of every dialect get claims that kube-scheduler allocates, and the templates of these. With
    --to podman their containers get the variables that partage reads on one machine, beside Podman.
    """
    logs.configure("partage", level="error", log_format="text")
    registry = load_all(scheduler_hooks, installed(SCHEDULER_GROUP), blocked=blocked_names(os.environ))
    framework = SchedulerFramework(registry, Ledger())
    reads, why = framework.asked, partial(unread, lexicon=Lexicon(framework.words()))
    documents = read_mappings(file.read(MAX_ANNOTATION_BYTES + 1), "manifest", most=_MOST_DOCUMENTS)
    into: Mapping[str, Callable[[Document, Reader, Why], Outcome]] = {
        "native": partial(to_native, scheduler=scheduler_name),
        "dra": to_claims,
        "podman": to_variables,
    }
    done = [into[to](each, reads, why) for each in documents]
    told = [each for one in done for each in one.told]
    for line in (*(each.sentence for each in told), *(note for one in done for note in one.notes)):
        click.echo(line, err=True)
    made = [document for one in done for document in one.documents]
    click.echo("---\n".join(msgspec.yaml.encode(document).decode() for document in made), nl=False)
    return 0 if any(each.is_known for each in told) else FAILED
