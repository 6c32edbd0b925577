"""The command line of ``partage up``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from partage_cli.machine.places import MACHINE_FILE
from partage_cli.machine.setup import foreground, systemd
from partage_cli.machine.setup.decision import MOST_SIMULATED, SIMULATED, Decision, read_decision
from partage_cli.machine.setup.errors import Unfit
from partage_cli.machine.setup.hold import held, holder
from partage_cli.machine.setup.preparation import Wishes, prepared, require_fit
from partage_cli.machine.setup.readiness import why_not_whole
from partage_cli.main import SUBCOMMANDS


def _models() -> click.ParamType[Any]:
    """Models of simulated cards. Without their distribution any word is accepted, and the command fails later."""
    try:
        from partage_simgpu.profiles import profile_names  # noqa: PLC0415  a distribution of its own
    except ModuleNotFoundError:
        return click.STRING
    return click.Choice(profile_names())


@click.command(
    name="up",
    short_help=SUBCOMMANDS["up"].summary,
    epilog="""\b
Examples:
  sudo partage up
  sudo partage up --simulated h100 --cards 2
""",
)
@click.option("--simulated", type=_models(), help="Simulate cards of this model; real ones rest.")
@click.option("--cards", type=click.IntRange(1, MOST_SIMULATED), help="How many are simulated.  [default: 1]")
@click.option("--foreground", "in_foreground", is_flag=True, help="Stay, as where there is no systemd.")
@click.pass_obj
def command(root: Path, *, simulated: str | None, cards: int | None, in_foreground: bool) -> None:
    """Start what lets containers of Docker and Podman share this machine's cards.

    Where systemd runs, as units; elsewhere in the foreground, until Ctrl-C. Containers go on in either case. `partage
    docker install` then tells the engines.

    Without an NVIDIA card it simulates one.
    """
    root = root.absolute()
    wishes = Wishes(simulated=simulated, cards=cards)
    require_fit(root)
    if (pid := holder(root)) is not None:
        _tell_running(root, wishes, pid)
        return
    with held(root, "partage up"):
        decision = prepared(root, wishes, _say)
        if in_foreground or not systemd.runs_here(root):
            asyncio.run(foreground.live(root, decision, say=_say, up=_told(decision, "Ctrl-C, or `partage down`")))
        else:
            asyncio.run(systemd.start(root, decision, say=_say))
            _told(decision, "`partage down`")()


def _tell_running(root: Path, wishes: Wishes, pid: int) -> None:
    """Report a machine that a supervisor runs already."""
    decision, why = read_decision(root), asyncio.run(why_not_whole(root))
    if decision is None or why is not None:
        raise Unfit(f"process {pid} is setting this machine up, or takes it down: {why or 'it has just begun'}")
    if wishes != Wishes():
        raise Unfit(f"this machine is up already, by process {pid}; `partage down`, then `partage up` with these words")
    _say(f"this machine is up already, by process {pid}, as {root / MACHINE_FILE} says")
    _told(decision, "`partage down`")()


def _told(decision: Decision, ends: str) -> Callable[[], None]:
    def tell() -> None:
        if decision.simulated:
            _say(SIMULATED)
        cards = (
            f"{decision.cards} simulated {decision.simulated}" if decision.simulated else "this machine's NVIDIA cards"
        )
        _say(f"up: containers may share {cards}")
        _say("try:    partage docker install")
        _say("        docker run --runtime partage -e PARTAGE_SHARE=300 -e PARTAGE_MEMORY=4Gi IMAGE")
        _say("        partage ps; partage top")
        _say(f"end:    {ends} leaves containers running; `partage down --all` ends them too")

    return tell


def _say(line: str) -> None:
    click.echo(line, err=True)
