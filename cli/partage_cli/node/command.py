"""Arguments and options of ``partage node``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from partage_cli.installation.journal import read
from partage_cli.installation.status import status as status_of
from partage_cli.main import FAILED, SUBCOMMANDS
from partage_cli.node.holders import Holder
from partage_cli.node.installation import contracts, install, installation_line, say, switch_off, switch_on, upgrade
from partage_cli.node.removal import uninstall
from partage_cli.node.rest import RestState, look, wait_until
from partage_cli.pauses import pause as ask_for_pause
from partage_cli.pauses import resume as take_back
from partage_cli.pauses import said_pauses
from partage_cli.tables import few, printable, table

_LONGEST_REASON: Final = 200
_FEW: Final = 8


def _reason(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if value.strip() and value.isprintable() and len(value) <= _LONGEST_REASON:
        return value.strip()
    raise click.BadParameter(f"it is for people; allowed: one printable line, 1 to {_LONGEST_REASON} characters")


_WAIT: Final = click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 3600),
    default=30,
    show_default=True,
    help="Seconds to wait until it is so; 0 only asks.",
)


@click.group(name="node", short_help=SUBCOMMANDS["node"].summary)
def command() -> None:
    """Put partage on this node, switch it on and off, let its cards rest. To be run on the node, as root."""


for _each in (install, switch_on, switch_off, upgrade, uninstall, contracts):
    command.add_command(_each)


@command.command(
    short_help="Let go of the driver.",
    epilog="""\b
Examples:
  partage node pause --reason "driver 580"
  partage node pause && systemctl stop nvidia-persistenced && rmmod nvidia_uvm nvidia
""",
)
@click.option("--reason", default="by hand", show_default=True, callback=_reason, help="Shown with every card.")
@_WAIT
@click.pass_obj
def pause(root: Path, *, reason: str, wait_s: float) -> int:
    """Let the advertiser let go of the driver, until `resume`; pods that run go on, new ones are not placed here.

    When it returns 0, no process of partage holds the driver. Others that do are named: a module that is held cannot
    be unloaded. Asked again, only the reason changes.
    """
    ask_for_pause(root, reason)
    if not wait_s:
        say("asked for; not waited for")
        return 0
    say("waiting until the advertiser has let go of the driver")
    seen = wait_until(lambda seen: seen.rests, functools.partial(look, root), wait_s)
    if not seen.rests:
        say(f"after {wait_s:g} s {_not_resting(seen)}; see the advertiser's log. The pause stays until `resume`")
        return FAILED
    say(f"{_cards(seen)}; no process of partage holds the driver")
    if seen.others:
        say(f"others hold it: {_named(seen.others)}")
    return 0


@command.command(
    short_help="Look after the cards again.",
    epilog="""\b
Examples:
  partage node resume
""",
)
@_WAIT
@click.pass_obj
def resume(root: Path, *, wait_s: float) -> int:
    """Take back `pause`. Other pauses, such as the GPU operator's, stay."""
    if not take_back(root):
        say("this node was not paused by hand")
    if others := said_pauses(root):
        say(printable(f"still paused by {', '.join(f'{who}: {why}' if why else who for who, why in others)}"))
        return 0
    if not wait_s:
        return 0
    seen = wait_until(lambda seen: seen.works, functools.partial(look, root), wait_s)
    if not seen.works:
        say(f"after {wait_s:g} s the advertiser still says that the cards are paused: see its log")
        return FAILED
    say(_after_resume(seen))
    return 0


@command.command(
    epilog="""\b
Examples:
  partage node status
  partage node status -o json | jq .in_force
"""
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def status(root: Path, *, output: str) -> None:
    """Say what is installed and whether it is in force, who has paused this node and why, and how its cards are."""
    installed = status_of(root, read(root))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(installed)).decode())
        return
    if line := installation_line(installed):
        say(line)
    for path in installed.altered:
        say(f"{path} is missing, or other than it was installed: `partage node install` puts it back")
    seen, pauses = look(root), said_pauses(root)
    if pauses:
        rows = [(printable(who), printable(why) or "-") for who, why in pauses]
        click.echo(table(("PAUSED BY", "WHY"), rows), nl=False)
    say(_cards(seen) if pauses else _after_resume(seen))
    if seen.holders:
        say(f"processes that hold the driver: {_named(seen.holders)}")


def _cards(seen: RestState) -> str:
    if not seen.advertiser_runs:
        return "no advertiser runs on this node; the pause will hold for the next one"
    return f"{seen.resting} of {seen.cards} cards paused"


def _after_resume(seen: RestState) -> str:
    if not seen.advertiser_runs:
        return "not paused; no advertiser runs on this node, so it is not known how its cards are"
    return f"not paused; the advertiser tells of {seen.cards} cards"


def _not_resting(seen: RestState) -> str:
    if seen.ours:
        return f"{_named(seen.ours)} still holds the driver"
    return f"the advertiser says that {seen.resting} of {seen.cards} cards are paused"


def _named(found: Sequence[Holder]) -> str:
    return few(map(str, found), _FEW)
