"""The words and options of ``partage limits``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from partage_cli.amounts import amount, short_id
from partage_cli.limits.choosing import Target, chosen, require_one_container
from partage_cli.main import SUBCOMMANDS
from partage_cli.tables import printable, table
from partage_isolation.control.client import BrokerClient
from partage_isolation.control.questions import SetLimits
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.errors import DecodeError


def _bytes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_whole_quantity(value, largest=1 << 62)
    except DecodeError as error:
        raise click.BadParameter(f"{error.value}; allowed: {error.allowed}") from None


@click.command(
    name="limits",
    short_help=SUBCOMMANDS["limits"].summary,
    epilog="""\b
Examples:
  sudo partage limits train-0
  sudo partage limits team-a/train-0 --memory 4Gi
  sudo partage limits train-0 --container main --card 0 --memory 512Mi
  sudo partage limits train-0 --reset
""",
)
@click.argument("pod")
@click.option("--container", metavar="NAME", help="Of this container; needed where several have limits.")
@click.option("--card", metavar="CARD", help="On this card: its id, how that begins, or its index.  [default: on each]")
@click.option("--memory", "memory_bytes", metavar="QUANTITY", callback=_bytes, help="Lower it to this, as 4Gi.")
@click.option("--reset", is_flag=True, help="What the pod was granted holds again.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    pod: str,
    container: str | None,
    card: str | None,
    memory_bytes: int | None,
    reset: bool,
    output: str,
) -> None:
    """Show what the containers of POD may hold of this node's cards, and lower it while they run. Needs root.

    POD is a name, NAMESPACE/NAME or a uid. A lower limit takes nothing away: nothing more is given until the container
    is below it. It holds until the container ends; what the pod was granted is never exceeded.
    """
    if reset and memory_bytes is not None:
        raise click.UsageError("--memory and --reset exclude each other")
    broker = BrokerClient(root)
    targets = chosen(broker.tell(), pod, container=container, card=card)
    if reset or memory_bytes is not None:
        require_one_container(targets, pod)
        for target in targets:
            broker.set_limits(SetLimits(key=target.container.key, card=target.held.card, memory_bytes=memory_bytes))
        targets = chosen(broker.tell(), pod, container=container, card=card)
    _print(targets, output)


def _print(targets: Sequence[Target], output: str) -> None:
    if output == "json":
        rows = [
            {"pod": each.container.pod, "container": each.container.container, **msgspec.to_builtins(each.held)}
            for each in targets
        ]
        click.echo(msgspec.json.format(msgspec.json.encode({"limits": rows}), indent=1))
        return
    header = ("POD", "CONTAINER", "CARD", "MEMORY", "LIMIT", "GRANTED", "REFUSED")
    colour = False if os.environ.get("NO_COLOR") else None
    click.echo(table(header, map(_row, targets)), nl=False, color=colour)


def _row(target: Target) -> tuple[str, ...]:
    container, held = target
    limit = amount(held.limit_bytes)
    return (
        printable(f"{container.pod.namespace}/{container.pod.name}"),
        printable(container.container),
        short_id(held.card),
        amount(held.charged_bytes),
        click.style(limit, fg="yellow") if held.limit_bytes < held.granted_bytes else limit,
        amount(held.granted_bytes),
        str(held.refused),
    )
