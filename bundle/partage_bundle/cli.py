"""The command tools/bundle: prints paths to stdout, one a line, and progress to stderr."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from partage_bundle import archive, debian, image, layer, native, recipe, wheels
from partage_bundle.errors import BundleError
from partage_bundle.process import ROOT, say
from partage_bundle.registry import Repository
from partage_bundle.registry import push as push_layout
from partage_bundle.release import Asked, distributions
from partage_bundle.release import folder as release_folder
from partage_bundle.tree import built, every_tree, version_here

OUT = ROOT / ".cache/bundle"
_MACHINE = click.option(
    "--arch",
    "machines",
    multiple=True,
    type=click.Choice(list(recipe.MACHINES)),
    help="For which machines.  [default: this one]",
)
_TREE = click.option(
    "--tree", "trees", multiple=True, type=click.Choice(list(recipe.TREES)), help="Which trees.  [default: all]"
)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@_MACHINE
@_TREE
@click.pass_context
def cli(context: click.Context, machines: tuple[str, ...], trees: tuple[str, ...]) -> None:
    """Build what is installed: trees for nodes and for the scheduler, of the commit that is checked out.

    Without a command the folders of the trees are printed. They are in a cache: copy them, and write nothing into them.
    """
    if context.invoked_subcommand is None:
        for tree in trees or recipe.TREES:
            for machine in machines or (os.uname().machine,):
                click.echo(built(tree, machine))


@cli.command()
@_MACHINE
@click.option("--out", type=click.Path(path_type=Path), default=OUT, help="Where they go.  [default: .cache/bundle]")
def all(machines: tuple[str, ...], out: Path) -> None:  # noqa: A001  what people type
    """Write images, and one archive of all for clusters without a network."""
    version = version_here()
    chosen = [recipe.MACHINES[name] for name in machines or (os.uname().machine,)]
    layouts: dict[str, Path] = {}
    archives: dict[str, layer.Layer] = {}
    for tree, found in every_tree(chosen, version):
        layout = layouts[image.name(tree)] = out / "images" / image.name(tree)
        index = image.write(layout, tree, version, found)
        say(f"{image.name(tree)}:{version} is {index.digest}")
        for machine, path in found:
            archives[f"{image.name(tree)}-{version}-{machine.name}.tar.gz"] = layer.of_tree(path, version)
    whole = out / f"partage-{version}-{'-'.join(machine.name for machine in chosen)}.tar"
    archive.write(whole, version, layouts, archives)
    for path in (*layouts.values(), whole):
        click.echo(path)


@cli.command()
@click.argument("registry")
@_TREE
@click.option("--out", type=click.Path(path_type=Path), default=OUT, help="Where `all` wrote images.")
@click.option("--plain-http", is_flag=True, help="For a registry without certificates.")
def push(registry: str, trees: tuple[str, ...], out: Path, plain_http: bool) -> None:  # noqa: FBT001  click's
    """Push the images that `all` wrote, as REGISTRY/partage-node and so on; print them by digest."""
    for name in trees or recipe.TREES:
        tree = recipe.TREES[name]
        to = Repository.of(f"{registry}/{image.name(tree)}", is_plain=plain_http)
        digest = push_layout(out / "images" / image.name(tree), to)
        click.echo(f"{to.host}/{to.path}@{digest}")


@cli.command()
@_MACHINE
@click.option(
    "--python", "pythons", multiple=True, help="Which Pythons there are wheels of others for.  [default: all]"
)
@click.option("--at", default=release_folder.NOWHERE, show_default=True, help="Below which address krew finds it.")
@click.option("--registry", default="", help="Where the chart takes images from unless told otherwise.")
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "dist", help="Where it goes.  [default: dist]")
def release(machines: tuple[str, ...], pythons: tuple[str, ...], at: str, registry: str, out: Path) -> None:
    """Write all that people install, with what they check it by, into a folder named after the version."""
    version = version_here()
    chosen = [recipe.MACHINES[name] for name in machines or recipe.MACHINES]
    release_folder.write(out / version, Asked(version, chosen, pythons or distributions.PYTHONS, at, registry))
    click.echo(out / version)


@cli.command()
@_MACHINE
def objects(machines: tuple[str, ...]) -> None:
    """Build the preload library, and print its folder."""
    for name in machines or (os.uname().machine,):
        click.echo(native.objects(recipe.MACHINES[name]))


@cli.command()
@_MACHINE
def program(machines: tuple[str, ...]) -> None:
    """Build partage-oci, and print its folder."""
    for name in machines or (os.uname().machine,):
        click.echo(native.program(recipe.MACHINES[name]))


@cli.command()
def lock() -> None:
    """Choose the newest packages of Debian, and the wheels that the development environment has."""
    for tree in recipe.TREES.values():
        click.echo(wheels.write_lock(tree))
    for machine in recipe.MACHINES.values():
        click.echo(debian.write_lock(machine))


def main() -> None:
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BundleError as error:
        say(str(error))
        sys.exit(1)
    except OSError as error:
        say(f"{error.filename or 'the system'}: {error.strerror}; PARTAGE_BUNDLE_CACHE moves the cache")
        sys.exit(1)
