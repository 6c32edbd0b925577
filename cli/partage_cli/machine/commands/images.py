"""``partage images``, ``pull`` and ``load``: what containers are made of."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click
import msgspec

from partage_cli.machine.commands.connection import manager
from partage_cli.machine.commands.progress import ProgressLine
from partage_cli.machine.commands.shown import images_table
from partage_cli.machine.wire.messages import DoneImages, Images, Load, Pull
from partage_cli.main import SUBCOMMANDS
from partage_plugins.errors import Refused


@click.command(name="images", short_help=SUBCOMMANDS["images"].summary)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def images(root: Path, *, output: str) -> None:
    """Show the images of this machine that need no registry."""
    with manager(root) as talk:
        found = talk.told(Images(), DoneImages).images
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode({"images": found}), indent=2))
    else:
        click.echo(images_table(found), nl=False)


@click.command(name="pull", short_help=SUBCOMMANDS["pull"].summary)
@click.argument("image")
@click.option("-q", "--quiet", is_flag=True, help="Without its progress.")
@click.pass_obj
def pull(root: Path, *, image: str, quiet: bool) -> None:
    """Fetch IMAGE from its registry; a short name is Docker Hub's."""
    with manager(root) as talk, ProgressLine(quiet=quiet) as progress:
        pulled = talk.told(Pull(image=image), DoneImages, progress=progress.tell)
    _print_names(pulled)


@click.command(
    name="load",
    short_help=SUBCOMMANDS["load"].summary,
    epilog="""\b
Examples:
  docker save team/app:1.2 | sudo partage load
  partage load -i app.tar
""",
)
@click.option("-i", "--input", "archive", type=click.Path(path_type=Path), help="The archive.  [default: stdin]")
@click.pass_obj
def load(root: Path, *, archive: Path | None) -> None:
    """Load images from an archive, as `docker save` writes it, or an OCI layout; the manager reads it as root."""
    if archive is not None:
        _load(root, archive.resolve(strict=True))
        return
    if sys.stdin.isatty():
        raise Refused("stdin is a terminal: say the archive by --input, or pipe it")
    with tempfile.NamedTemporaryFile(prefix="partage-load-", suffix=".tar") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        _load(root, Path(file.name))


def _load(root: Path, archive: Path) -> None:
    with manager(root) as talk, ProgressLine() as progress:
        loaded = talk.told(Load(path=str(archive)), DoneImages, progress=progress.tell)
    _print_names(loaded)


def _print_names(done: DoneImages) -> None:
    for image in done.images:
        for name in image.names or (image.id,):
            click.echo(name)
