"""`make rig-up` and `make rig-down`: a cluster for a person."""

from __future__ import annotations

import sys

import click

from rig.errors import RigError
from trial import keeper


def say(line: str) -> None:
    click.echo(line, err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A real Kubernetes on this machine, without partage: its nodes have systemd and simulated cards."""


@main.command()
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1, 15), help="how many nodes")
def up(nodes: int) -> None:
    found = keeper.up(nodes, say)
    say(f"rig {found.slot} is up with {' and '.join(found.ways_in)}, and nothing of partage; docs/install.md is for it")
    say(f"registry:   {found.registry}, without certificates; nodes find it by every registry's name")
    say(f"logs:       {found.logs}")
    for name, way_in in found.ways_in.items():
        say(f"on {name}:   {way_in} bash")
    say("to stop it: make rig-down")
    click.echo(f"export KUBECONFIG={found.kubeconfig}")
    click.echo(f'export PATH="{":".join(found.programs)}:$PATH"')


@main.command()
@click.argument("slot", type=int, required=False)
def down(slot: int | None) -> None:
    """Stop every cluster that `up` started, or the one numbered SLOT."""
    done = keeper.down(say, slot)
    say(f"gone: {', '.join(f'rig {number}' for number in done)}" if done else "no rig is up")


@main.command(hidden=True)
@click.argument("nodes", type=int)
def keep(nodes: int) -> None:
    """Have a rig until SIGTERM; `up` starts this."""
    keeper.keep(nodes, say)


if __name__ == "__main__":
    try:
        main(prog_name="tools/rig")
    except RigError as error:
        say("\n".join([f"rig: {error}", *getattr(error, "__notes__", [])]))
        sys.exit(1)
