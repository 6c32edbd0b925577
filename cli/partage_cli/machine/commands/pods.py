"""``partage ps`` and ``partage inspect``: what pods there are, and all of one."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from partage_cli.machine.commands.connection import manager, meant
from partage_cli.machine.commands.shown import pods_table
from partage_cli.machine.wire.messages import DoneInspect, DonePods, Inspect, Ps
from partage_cli.main import SUBCOMMANDS


@click.command(
    name="ps",
    short_help=SUBCOMMANDS["ps"].summary,
    epilog="""\b
Examples:
  partage ps
  partage ps -a -o wide
  partage stop $(partage ps -q)
""",
)
@click.option("-a", "--all", "ended", is_flag=True, help="Those that have ended too.")
@click.option("-q", "--quiet", is_flag=True, help="Their names alone.")
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json"]), default="table", show_default=True)
@click.pass_obj
def ps(root: Path, *, ended: bool, quiet: bool, output: str) -> None:
    """Show what runs on this machine, what it has of the cards and what it uses.

    SHARE is guaranteed of a card's time, LIMIT its ceiling, MEMORY a hard limit of the card's memory; of several cards
    it is all together. `partage top` shows it as it changes.
    """
    with manager(root) as talk:
        pods = talk.told(Ps(all=ended), DonePods).pods
    if quiet:
        click.echo("".join(f"{pod.name}\n" for pod in pods), nl=False)
    elif output == "json":
        click.echo(_json({"pods": pods}))
    else:
        click.echo(pods_table(pods, time.time_ns(), wide=output == "wide"), nl=False)


@click.command(name="inspect", short_help=SUBCOMMANDS["inspect"].summary)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.pass_obj
def inspect(root: Path, *, names: tuple[str, ...]) -> None:
    """Show all that is known of each NAME, as JSON: how it is, what it was asked to be, and what it was granted."""
    found: list[DoneInspect] = []
    with manager(root) as talk:
        for name in names:
            with meant(talk, name):
                found.append(talk.told(Inspect(name=name), DoneInspect))
    click.echo(_json(found))


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)
