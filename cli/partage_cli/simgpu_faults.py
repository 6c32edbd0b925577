"""``partage simgpu inject``: injects faults into a simulated node, and clears them.

Each command here sends one control command to simgpud, after checking its arguments. simgpud implements what a fault
does to programs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import click

from partage_cli.simgpu_options import DIR, NAME
from partage_simgpu.node import Nodes, SimulatedNode

Target: TypeAlias = Callable[[], SimulatedNode]
"""Finds the node when a fault is sent, so that `--help` needs none."""

_CARD: Final = click.argument("card", type=click.IntRange(0, 31))


@click.group(
    short_help="Make things go wrong on a node.",
    epilog="""\b
Examples:
  partage simgpu inject lab xid 0 79
  partage simgpu inject lab fail 0 3
  partage simgpu inject lab nvml hang

\b
CARD counts a node's cards from 0 as `partage simgpu ls` does, MIG instances included.
`partage simgpu inject NAME FAULT --help` explains one.
""",
)
@NAME
@DIR
@click.pass_context
def inject(context: click.Context, nodes: Nodes, name: str) -> None:
    """Make things go wrong on a simulated node, and right again. Options come before NAME."""
    context.obj = partial(nodes.node, name)


@inject.command()
@_CARD
@click.argument("number", type=click.IntRange(1, 999))
@click.option("--pid", type=click.IntRange(1), help="The process that it hits.  [default: all on that card]")
@click.pass_obj
def xid(target: Target, card: int, number: int, pid: int | None) -> None:
    """Report XID error NUMBER on CARD, as the kernel driver does.

    It becomes an event for those who wait for one, such as NVIDIA's device plugin. 13, 31, 43, 45, 68 and 94 end the
    work of the process that they hit; 48, 74 and 95 that of all on the card; 79 and 119 take the card off the bus. Any
    other number is only reported.
    """
    target().control(f"xid {card} {number}" + (f" {pid}" if pid else ""))


@inject.command()
@_CARD
@click.argument("kind", type=click.Choice(["corrected", "uncorrected"]))
@click.argument("count", type=click.IntRange(1), default=1)
@click.pass_obj
def ecc(target: Target, card: int, kind: str, count: int) -> None:
    """Count ECC errors on CARD."""
    target().control(f"ecc {card} {kind} {count}")


@inject.command()
@_CARD
@click.pass_obj
def lose(target: Target, card: int) -> None:
    """Take CARD off the bus: time on it stops, and every call of those who use it fails."""
    target().control(f"lose {card}")


@inject.command()
@_CARD
@click.pass_obj
def restore(target: Target, card: int) -> None:
    """Bring a lost CARD back, for programs that start then."""
    target().control(f"restore {card}")


@inject.command()
@_CARD
@click.argument("count", type=click.IntRange(1))
@click.pass_obj
def fail(target: Target, card: int, count: int) -> None:
    """Refuse the next COUNT allocations on CARD, as if it were full."""
    target().control(f"fail {card} {count}")


@inject.command()
@_CARD
@click.argument("what", type=click.Choice(["bytes", "lists", "memory", "no"]))
@click.pass_obj
def blind(target: Target, card: int, what: str) -> None:
    """Let NVML not tell something of CARD, as under WSL and on Jetson; `no` ends it.

    `bytes`: how much memory a process holds. `lists`: which processes are on it. `memory`: how much memory it has.
    """
    target().control(f"blind {card} {what}")


@inject.command()
@_CARD
@click.option("--pid", type=click.IntRange(1), help="The process that it hits.  [default: all on that card]")
@click.pass_obj
def stick(target: Target, card: int, pid: int | None) -> None:
    """Let the next kernel on CARD never end. Only the end of its process helps."""
    target().control(f"stick {card}" + (f" {pid}" if pid else ""))


@inject.command(name="reload")
@click.pass_obj
def reload_(target: Target) -> None:
    """Load the driver again: every program loses its cards, and programs that start then work."""
    target().control("reload")


@inject.command()
@click.pass_obj
def peaks(target: Target) -> None:
    """Forget the highest uses of memory that were seen, which no program notices."""
    target().control("peaks reset")


@inject.group()
def nvml() -> None:
    """Make NVML hang, slow, or answer errors, in every program."""


@nvml.command()
@click.pass_obj
def hang(target: Target) -> None:
    """Let every NVML call wait until `resume`."""
    target().control("nvml hang")


@nvml.command()
@click.pass_obj
def resume(target: Target) -> None:
    """Let NVML calls that hang go on."""
    target().control("nvml resume")


@nvml.command()
@click.argument("milliseconds", type=click.IntRange(0))
@click.pass_obj
def delay(target: Target, milliseconds: int) -> None:
    """Let every NVML call take MILLISECONDS; 0 ends it."""
    target().control(f"nvml delay {milliseconds}")


@nvml.command()
@click.argument("number", type=click.IntRange(0, 999))
@click.pass_obj
def answer(target: Target, number: int) -> None:
    """Let every NVML call answer error NUMBER, such as 15 for a lost GPU; 0 ends it."""
    target().control(f"nvml answer {number}")
