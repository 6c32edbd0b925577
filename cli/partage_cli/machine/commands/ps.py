"""The command line of ``partage ps``."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from partage_base.inventory_file import InventoryFile
from partage_cli.docker.engine import ENGINES, names
from partage_cli.machine.commands.shown import sharing, sharing_table
from partage_cli.machine.setup.decision import SIMULATED, is_simulated
from partage_cli.main import SUBCOMMANDS
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import ContainerReport
from partage_oci.client import AgentClient
from partage_plugins.errors import Refused


@click.command(
    name="ps",
    short_help=SUBCOMMANDS["ps"].summary,
    epilog="""\b
Examples:
  sudo partage ps
  sudo partage ps -o json | jq '.containers[] | select(.used_bytes == 0)'
""",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def command(root: Path, *, output: str) -> None:
    """Show the containers of Docker and Podman that hold a share, what they may have and what they use. Needs root.

    SHARE is guaranteed, in thousandths of a card's time, LIMIT its ceiling, MEMORY a hard limit of the card's memory;
    of several cards it is all together. A container that ended keeps its place for a while, in case it is started
    again. Names and images are their engine's.
    """
    held = AgentClient(root).tell().containers
    if is_simulated(root):
        click.echo(SIMULATED, err=True)
    named = {id_: each for engine in ENGINES for id_, each in names(engine).items()} if held else {}
    found = sharing(held, _told(root), named)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode({"containers": found}), indent=2))
        return
    known = InventoryFile(root).current()
    cards = known.gpu.cards if known is not None and known.gpu is not None else ()
    click.echo(sharing_table(found, {card.id: card.index for card in cards}), nl=False)


def _told(root: Path) -> tuple[ContainerReport, ...]:
    try:
        return BrokerClient(root).tell().containers
    except (ControlError, Refused) as error:
        click.echo(f"{error}; what is used is not known", err=True)
        return ()
