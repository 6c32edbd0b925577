"""The words and options of ``partage node upgrade``, and of ``contracts``, by which it asks other versions."""

from __future__ import annotations

from pathlib import Path

import click

from partage_cli.installation import journal
from partage_cli.installation.errors import BadTree
from partage_cli.installation.host import Host
from partage_cli.installation.services import services_of
from partage_cli.installation.tree import own_tree
from partage_cli.installation.versions import contracts as agreed
from partage_cli.installation.versions.upgrade import Upgrade


@click.command(
    short_help="Put another version in force.",
    epilog="""\b
Examples:
  /opt/partage/VERSION/bin/partage node upgrade
  partage node upgrade --tree /mnt/partage-node --dry-run
""",
)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The unpacked version.  [default: the one that this program is of]",
)
@click.option("--dry-run", is_flag=True, help="Print what would change, then exit.")
@click.pass_obj
def upgrade(root: Path, *, tree: Path | None, dry_run: bool) -> None:
    """Put the version of TREE in force in place of the one that is; containers run on.

    The daemons start again one by one, crishim behind its socket. Where one does not prove itself, the version before
    is in force again when this ends. An older version is an upgrade like others, as far as it reads what is here.
    """
    wanted = tree or own_tree()
    if wanted is None:
        raise BadTree("this program is of no unpacked version; say --tree")
    host = Host(root, services_of(root), _say)
    if dry_run:
        for change in Upgrade(host, journal.read(root)).foreseen(wanted):
            click.echo(str(change))
        return
    with journal.kept(root) as kept:
        Upgrade(host, kept).carry_out(wanted)


@click.command(short_help="Print what this version reads and leaves on a node.")
def contracts() -> None:
    """Print the forms that this version reads, and those that it leaves on a node, as JSON."""
    click.echo(agreed.encode(agreed.OURS))


def _say(line: str) -> None:
    click.echo(f"partage: {line}", err=True)
