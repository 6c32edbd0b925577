"""``partage grant``, ``revoke`` and ``grants``: shares of cards for containers that Docker or Podman runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import click
import msgspec

from partage_cli.machine.commands.connection import manager, say
from partage_cli.machine.commands.shown import grant_line, grants_table
from partage_cli.machine.grants.engines import ENGINES
from partage_cli.machine.wire.client import Conversation, Denied
from partage_cli.machine.wire.messages import Allow, DoneGrants, ListGrants, Revoke
from partage_cli.main import FAILED, SUBCOMMANDS

_BEGINS_S: Final = 30.0
_ENDS_S: Final = 30.0
_SHOWN_ID: Final = 12


@click.command(
    name="grant",
    short_help=SUBCOMMANDS["grant"].summary,
    epilog="""\b
Examples:
  docker run $(sudo partage grant --share 300 --memory 4Gi) pytorch/pytorch python train.py
  sudo partage grant --name web --share 200 --keep
  sudo partage revoke web
""",
)
@click.option("--share", type=click.IntRange(0), metavar="MILLI", help="Guarantee it so many thousandths of a card.")
@click.option("--limit", type=click.IntRange(0), metavar="MILLI", help="Never more than these.  [default: all]")
@click.option("--memory", metavar="QUANTITY", help="Of the card, as 4Gi: a hard limit.  [default: as the share]")
@click.option(
    "--cards", type=click.IntRange(1), metavar="NUMBER", help="On so many cards; the rest is of all together."
)
@click.option("--name", default="", help="[default: made up]")
@click.option("--keep", is_flag=True, help="Until it is revoked, whatever ends; for containers that start again.")
@click.option(
    "--engine",
    type=click.Choice([*ENGINES, "other"]),
    help="Look whether this one can take it; `other` looks at none.  [default: the first that can]",
)
@click.pass_obj
def grant(  # noqa: PLR0913  one parameter for each word of the command line
    root: Path,
    *,
    share: int | None,
    limit: int | None,
    memory: str | None,
    cards: int | None,
    name: str,
    keep: bool,
    engine: Literal["docker", "podman", "other"] | None,
) -> None:
    """Print the flag by which a container of Docker or Podman gets a share of this machine's cards.

    All containers that are run with it have the share together. It ends with the last of them, or by `partage revoke`.
    """
    from partage_cli.machine.grants.probe import usable  # noqa: PLC0415  for this command alone

    found = "ENGINE" if engine == "other" else usable(ENGINES if engine is None else (engine,))
    question = Allow(name=name, share=share, limit=limit, memory=memory, cards=cards, keep=keep)
    with manager(root) as talk:
        (made,) = talk.told(question, DoneGrants, deadline_s=_BEGINS_S).grants
    flag = f"--device {made.device}"
    say(f"{grant_line(made, keep=keep)}, as in: {found} run {flag} IMAGE")
    click.echo(flag)


@click.command(name="revoke", short_help=SUBCOMMANDS["revoke"].summary)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-f", "--force", is_flag=True, help="Kill the containers that have it.")
@click.pass_obj
def revoke(root: Path, *, names: tuple[str, ...], force: bool) -> int:
    """End each NAME: no other container gets it.

    A container that runs with it keeps it until it ends; which ones do is said.
    """
    code = 0
    with manager(root) as talk:
        for name in names:
            try:
                _revoke(talk, name, force=force)
            except Denied as denied:
                say(f"partage: {denied}")
                code = FAILED
    return code


def _revoke(talk: Conversation, name: str, *, force: bool) -> None:
    for left in talk.told(Revoke(name=name, force=force), DoneGrants, deadline_s=_ENDS_S).grants:
        which = ", ".join(each[:_SHOWN_ID] for each in left.containers) or "programs of its containers"
        say(f"{left.name} ends with those that have it: {which}" + ("" if force else "; --force kills them"))
    click.echo(name)


@click.command(name="grants", short_help=SUBCOMMANDS["grants"].summary)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def grants(root: Path, *, output: str) -> None:
    """Show the grants that stand, what they have and use, and which containers have them."""
    with manager(root) as talk:
        found = talk.told(ListGrants(), DoneGrants).grants
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode({"grants": found}), indent=2))
    else:
        click.echo(grants_table(found), nl=False)
