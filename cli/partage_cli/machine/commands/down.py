"""The command line of ``partage down``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import click

from partage_cli.docker.program import InstalledProgram
from partage_cli.machine.places import DRIVER, RUN, STATE
from partage_cli.machine.setup import systemd
from partage_cli.machine.setup.decision import read_decision
from partage_cli.machine.setup.errors import NotReadable, Unfit
from partage_cli.machine.setup.hold import end_holder, held
from partage_cli.machine.setup.removal import end_containers, remove_all
from partage_cli.machine.setup.services import services
from partage_cli.main import SUBCOMMANDS

_END_WITHIN_S: Final = 120.0
"""For four services, each with its own deadline."""


@click.command(
    name="down",
    short_help=SUBCOMMANDS["down"].summary,
    epilog="""\b
Examples:
  sudo partage down
  sudo partage down --all
  sudo partage down --all --purge
""",
)
@click.option("--all", "kills", is_flag=True, help="Kill every container that has a share.")
@click.option("--purge", is_flag=True, help="Remove all that `partage up` made.")
@click.pass_obj
def command(root: Path, *, kills: bool, purge: bool) -> None:
    """End what `partage up` started.

    Containers go on without it, with the limits that they have, and `partage up` takes them over again. New ones with a
    share don't start. What `partage docker install` did stays.
    """
    root = root.absolute()
    if os.geteuid() != 0:
        raise Unfit("`partage down` ends services of this machine: run it as root")
    is_here = _is_decided(root, forgiving=purge)
    if not is_here and not (root / STATE).exists() and not (root / RUN).exists():
        _say("nothing is up here")
        return
    pid = end_holder(root, within_s=_END_WITHIN_S)
    with held(root, "partage down"):
        asyncio.run(_down(root, kills=kills, purge=purge))
    _say(f"ended{f', with process {pid}' if pid else ''}")


async def _down(root: Path, *, kills: bool, purge: bool) -> None:
    every = services(root, simulated=True, python=sys.executable, log=())
    has_units = systemd.runs_here(root)
    if has_units:
        await systemd.stop(root, [each for each in every if not each.outlives])
    if not (kills or purge):
        _say("containers go on; `partage down --all` ends them too")
        return
    await asyncio.to_thread(end_containers, root, kills=kills, say=_say)
    if has_units:
        await systemd.stop(root, every)
    if (root / DRIVER).exists():
        from partage_cli.machine.setup import simulation  # noqa: PLC0415  a distribution of its own

        await asyncio.to_thread(simulation.end, root)
    if purge:
        if has_units:
            await systemd.remove(root, every)
        await asyncio.to_thread(remove_all, root, _say)
        if InstalledProgram(root).is_there:
            _say("left: the runtime partage of Docker and Podman; `partage docker uninstall` takes that back")


def _is_decided(root: Path, *, forgiving: bool) -> bool:
    try:
        return read_decision(root) is not None
    except NotReadable as error:
        if not forgiving:
            raise
        _say(f"{error}; it is removed with the rest")
        return True


def _say(line: str) -> None:
    click.echo(line, err=True)
