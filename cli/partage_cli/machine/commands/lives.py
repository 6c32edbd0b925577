"""``partage stop``, ``start``, ``rm`` and ``wait``: the lives of pods that are there."""

from __future__ import annotations

from pathlib import Path

import click

from partage_cli.machine.commands.connection import of_each
from partage_cli.machine.commands.progress import ProgressLine
from partage_cli.machine.wire.client import Conversation
from partage_cli.machine.wire.messages import Done, DoneRun, DoneWait, Rm, Start, Stop, Wait
from partage_cli.main import SUBCOMMANDS

_NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True)


@click.command(name="stop", short_help=SUBCOMMANDS["stop"].summary)
@_NAMES
@click.option(
    "-t", "--time", "grace_s", type=click.IntRange(0, 3600), metavar="SECONDS", help="Then kill.  [default: as it says]"
)
@click.pass_obj
def stop(root: Path, *, names: tuple[str, ...], grace_s: int | None) -> int:
    """Stop each NAME, whatever its restart policy: `partage start` starts it again."""

    def ask(talk: Conversation, name: str) -> str:
        talk.told(Stop(name=name, grace_s=grace_s), Done, deadline_s=None)
        return name

    return of_each(root, names, ask)


@click.command(name="start", short_help=SUBCOMMANDS["start"].summary)
@_NAMES
@click.pass_obj
def start(root: Path, *, names: tuple[str, ...]) -> int:
    """Start each NAME that has ended: with the same name and limits, on whichever card has room now."""

    def ask(talk: Conversation, name: str) -> str:
        with ProgressLine() as progress:
            return talk.told(Start(name=name), DoneRun, progress=progress.tell).pod.name

    return of_each(root, names, ask)


@click.command(name="rm", short_help=SUBCOMMANDS["rm"].summary)
@_NAMES
@click.option("-f", "--force", is_flag=True, help="Also one that runs.")
@click.pass_obj
def rm(root: Path, *, names: tuple[str, ...], force: bool) -> int:
    """Remove each NAME with all that it wrote."""

    def ask(talk: Conversation, name: str) -> str:
        talk.told(Rm(name=name, force=force), Done, deadline_s=None)
        return name

    return of_each(root, names, ask)


@click.command(name="wait", short_help=SUBCOMMANDS["wait"].summary)
@_NAMES
@click.pass_obj
def wait(root: Path, *, names: tuple[str, ...]) -> int:
    """Wait until each NAME has ended and is not started again, and print its exit code."""
    return of_each(root, names, _waited)


def _waited(talk: Conversation, name: str) -> str:
    return str(talk.told(Wait(name=name), DoneWait, deadline_s=None).exit_code)
