"""``partage logs`` and ``partage events``: what containers wrote, and what happens."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from partage_cli.machine.commands.connection import manager, meant
from partage_cli.machine.commands.foreground import Screen
from partage_cli.machine.commands.shown import event_line
from partage_cli.machine.wire.messages import Event, Events, LogLine, Logs
from partage_cli.main import INTERRUPTED, SUBCOMMANDS

_NS = 1_000_000_000


@click.command(name="logs", short_help=SUBCOMMANDS["logs"].summary)
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Until it has ended.")
@click.option("-n", "--tail", type=click.IntRange(0), metavar="LINES", help="The last ones alone.")
@click.option("-t", "--timestamps", is_flag=True, help="With the time of each line.")
@click.option("-c", "--container", default="", metavar="NAME", help="Of a pod with several.  [default: the first]")
@click.pass_obj
def logs(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path, *, name: str, follow: bool, tail: int | None, timestamps: bool, container: str
) -> int:
    """Print what NAME wrote, to the stream that it was written to."""
    screen = Screen(named=False, timed=timestamps)
    question = Logs(name=name, container=container, follow=follow, tail=tail)
    try:
        with manager(root) as talk, meant(talk, name):
            for line in talk.stream(question):
                if isinstance(line, LogLine):
                    screen.show(container, line)
                    if follow:
                        screen.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        screen.flush()
    return 0


@click.command(name="events", short_help=SUBCOMMANDS["events"].summary)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def events(root: Path, *, output: str) -> int:
    """Print what happens from now on, one line each: starts, ends, restarts, refusals, cards."""
    try:
        with manager(root) as talk:
            for event in talk.stream(Events()):
                if isinstance(event, Event):
                    click.echo(msgspec.json.encode(event) if output == "json" else _line(event))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _line(event: Event) -> str:
    at = datetime.fromtimestamp(event.at_ns // _NS, tz=UTC).astimezone()
    return event_line(event, at.isoformat(timespec="seconds"))
