"""``partage simgpu``: creates simulated nodes, lists them, loads them, injects faults and removes them.

Only the command line is here; `partage_simgpu` defines what a node is and how it runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from partage_cli.main import SUBCOMMANDS
from partage_cli.simgpu_faults import inject
from partage_cli.simgpu_options import DIR, NAME
from partage_cli.simgpu_shown import as_json, as_table, summary
from partage_simgpu.build import WORKLOADS, built
from partage_simgpu.description import Card
from partage_simgpu.node import Nodes, SimulatedNode, report
from partage_simgpu.profiles import load_profile, profile_names, read_profile

_START: Final = """\b
Start here:
  eval "$(partage simgpu new lab --card h100 --count 2)"
  partage simgpu load lab flood --seconds 10 &
  partage simgpu ls
  partage simgpu inject lab xid 0 79
  partage simgpu rm lab
"""


def _instances(_context: click.Context, _parameter: click.Parameter, value: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(name.strip() for name in one.split(",") if name.strip()) for one in value]


@click.group(name="simgpu", short_help=SUBCOMMANDS["simgpu"].summary, epilog=_START)
def command() -> None:
    """Simulated GPUs: cards for programs that speak CUDA's driver API or NVML, on a machine without any."""


command.add_command(inject)


@command.command(
    short_help="Make a node and start it.",
    epilog="""\b
Examples:
  eval "$(partage simgpu new lab)"
  partage simgpu new big --card h200 --count 8
  partage simgpu new cut --card h200 --mig 1g.18gb,1g.18gb,3g.71gb
  partage simgpu new mine --file my-card.toml
""",
)
@NAME
@click.option("--card", "names", type=click.Choice(profile_names()), multiple=True, help="A card.  [default: h100]")
@click.option(
    "--file",
    "files",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A card of your own: a TOML file, see docs/simgpu.md.",
)
@click.option("--count", type=click.IntRange(1, 32), default=1, show_default=True, help="How many of each.")
@click.option(
    "--mig", "instances", multiple=True, callback=_instances, help="Cut the first card so; once more: the second."
)
@DIR
def new(  # noqa: PLR0913 (one parameter for each word of the command line)
    *,
    nodes: Nodes,
    name: str,
    names: Sequence[str],
    files: Sequence[Path],
    count: int,
    instances: Sequence[tuple[str, ...]],
) -> None:
    """Make a simulated node, start it in the background, and print the line that lets programs find it.

    The node runs until it is removed or the machine ends. Everything of it lies in one folder.
    """
    profiles = [load_profile(one) for one in names] + [read_profile(file) for file in files]
    whole = [Card(profile) for profile in profiles or [load_profile("h100")] for _ in range(count)]
    if len(instances) > len(whole):
        raise click.UsageError(f"--mig is given for {len(instances)} cards, and there are {len(whole)}")
    cut = [Card(card.profile, mig) for card, mig in zip(whole, instances, strict=False)]
    node, pid = nodes.make(name, cut + whole[len(cut) :])
    _tell(node, pid)


@command.command(
    short_help="Start a node again that ended.",
    epilog="""\b
Examples:
  eval "$(partage simgpu start lab)"
""",
)
@NAME
@DIR
def start(nodes: Nodes, name: str) -> None:
    """Start a node again that ended, such as with the machine."""
    _tell(nodes.node(name), nodes.start(name))


@command.command(
    epilog="""\b
Examples:
  partage simgpu ls
  partage simgpu ls -o json
"""
)
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json"]), default="table", show_default=True)
@DIR
def ls(nodes: Nodes, output: str) -> None:
    """List the nodes, their cards, and who uses them."""
    reports = [report(nodes.node(name)) for name in nodes.names()]
    click.echo(as_json(reports) if output == "json" else as_table(reports, wide=output == "wide"), nl=False)


@command.command(
    short_help="Run a small program on a node's cards.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\nPrograms (`partage simgpu load NAME PROGRAM --help` lists the options of one):\n"
    + "".join(f"  {program:<14}{what}\n" for program, what in WORKLOADS.items())
    + """\

\b
Examples:
  partage simgpu load lab flood --seconds 10
  partage simgpu load lab inference --rate 30 --seconds 10
""",
)
@NAME
@click.argument("program", type=click.Choice(list(WORKLOADS)), metavar="PROGRAM")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTION]...")
@DIR
def load(nodes: Nodes, name: str, program: str, arguments: Sequence[str]) -> NoReturn:
    """Run a small program on a node's cards; it prints one line of JSON at its end.

    Options of partage, such as --dir, come before NAME; what comes after PROGRAM is the program's.
    """
    file = built() / program
    os.execve(file, [str(file), *arguments], {**nodes.node(name).environment})  # noqa: S606 (a program of ours)


@command.command(
    short_help="End nodes and delete them.",
    epilog="""\b
Examples:
  partage simgpu rm lab
""",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@DIR
def rm(nodes: Nodes, names: Sequence[str]) -> None:
    """End nodes and delete their folders. Programs that use them see their driver go away."""
    for name in names:
        nodes.remove(name)


def _tell(node: SimulatedNode, pid: int) -> None:
    click.echo(f"export LD_LIBRARY_PATH={node.libraries}")
    click.echo(f"{summary(report(node))}; simgpud is process {pid}", err=True)
    click.echo("programs find it after the line on stdout, or with eval; containers by its driver root,", err=True)
    click.echo(str(node.root), err=True)
