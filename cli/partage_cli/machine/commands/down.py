"""The words and options of ``partage down``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import click

from partage_cli.machine.places import CONTAINERD_CONFIG, DRIVER, RUN, STATE
from partage_cli.machine.setup import systemd
from partage_cli.machine.setup.decision import Decision, read_decision
from partage_cli.machine.setup.errors import NotReadable, Unfit
from partage_cli.machine.setup.grants import end_grants
from partage_cli.machine.setup.hold import end_holder, held
from partage_cli.machine.setup.pods import end_all, runtime_for_now
from partage_cli.machine.setup.removal import remove_all
from partage_cli.machine.setup.services import CONTAINERD, Service, services
from partage_cli.main import SUBCOMMANDS
from partage_simgpu import simgpud

_END_WITHIN_S: Final = 120.0
"""Six services, each with its own deadline."""


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
@click.option("--all", "ends_pods", is_flag=True, help="Stop and remove every container first.")
@click.option("--purge", is_flag=True, help="Remove all that `partage up` made: images, settings, network, its keys.")
@click.pass_obj
def command(root: Path, *, ends_pods: bool, purge: bool) -> None:
    """End what `partage up` started.

    Containers go on without it, with the limits that they have, and `partage up` takes them over again. Packages that
    were installed stay.
    """
    root = root.absolute()
    if os.geteuid() != 0:
        raise Unfit("`partage down` ends services of this machine: run it as root")
    decision = _decision(root, forgiving=purge)
    if decision is None and not (root / STATE).exists() and not (root / RUN).exists():
        _say("nothing is up here")
        return
    pid = end_holder(root, within_s=_END_WITHIN_S)
    with held(root, "partage down"):
        asyncio.run(_down(root, decision, ends_pods=ends_pods, purge=purge))
    _say(f"ended{f', with process {pid}' if pid else ''}")


async def _down(root: Path, decision: Decision | None, *, ends_pods: bool, purge: bool) -> None:
    every = services(root, decision, python=sys.executable, log=()) if decision else ()
    if systemd.runs_here(root):
        await systemd.stop(root, [each for each in every if not each.outlives])
    if not (ends_pods or purge):
        _say("containers go on; `partage down --all` ends them too")
        return
    end_grants(root, kills=ends_pods, say=_say)
    containerd = next((each for each in every if each.name == CONTAINERD), None)
    if containerd is not None and (root / CONTAINERD_CONFIG).exists():
        await _end_pods(root, containerd, ends_pods=ends_pods)
    if systemd.runs_here(root):
        await systemd.stop(root, every)
    await asyncio.to_thread(_end_simulation, root)
    if purge:
        if systemd.runs_here(root):
            await systemd.remove(root, every)
        await asyncio.to_thread(remove_all, root, decision, _say)


async def _end_pods(root: Path, containerd: Service, *, ends_pods: bool) -> None:
    async with runtime_for_now(root, containerd, _say) as runtime:
        left = await runtime.sandboxes()
        if left and not ends_pods:
            names = ", ".join(sorted(each.name for each in left))
            raise Unfit(f"containers are here that --purge would take away: {names}; add --all to end them")
        for name in await end_all(runtime):
            _say(f"{name} is ended and removed")


def _end_simulation(root: Path) -> None:
    """The simulated driver, which nothing uses any more."""
    if (root / DRIVER).exists() and (running := simgpud.running(root / DRIVER)) is not None:
        with running:
            running.stop()


def _decision(root: Path, *, forgiving: bool) -> Decision | None:
    try:
        return read_decision(root)
    except NotReadable as error:
        if not forgiving:
            raise
        _say(f"{error}; it is removed with the rest")
        return None


def _say(line: str) -> None:
    click.echo(line, err=True)
