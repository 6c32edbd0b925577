"""The words and options of ``partage up``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import click

from partage_cli.machine.places import MACHINE_FILE
from partage_cli.machine.setup import foreground, systemd
from partage_cli.machine.setup.decision import SIMULATED, Decision, read_decision
from partage_cli.machine.setup.errors import Unfit
from partage_cli.machine.setup.hold import held, holder
from partage_cli.machine.setup.preparation import Wishes, prepared, require_fit
from partage_cli.machine.setup.readiness import why_not_whole
from partage_cli.main import SUBCOMMANDS
from partage_simgpu.description import MOST_CARDS
from partage_simgpu.profiles import profile_names


@click.command(
    name="up",
    short_help=SUBCOMMANDS["up"].summary,
    epilog="""\b
Examples:
  sudo partage up
  sudo partage up --simulated h100 --cards 2
  sudo partage up --group docker --network 10.50.0.0/16
""",
)
@click.option("--simulated", type=click.Choice(profile_names()), help="Simulate cards of this model; real ones rest.")
@click.option("--cards", type=click.IntRange(1, MOST_CARDS), help="How many are simulated.  [default: 1]")
@click.option("--group", metavar="GROUP", help="Its members may run containers, and are then as good as root.")
@click.option("--network", metavar="SUBNET", help="Of the containers' bridge.  [default: one that is free]")
@click.option(
    "--containerd",
    type=click.Path(path_type=Path),
    help="The program, with its shim and ctr beside it.  [default: the machine's, else Debian's, unpacked]",
)
@click.option("--foreground", "in_foreground", is_flag=True, help="Stay, as where there is no systemd.")
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    simulated: str | None,
    cards: int | None,
    network: str | None,
    group: str | None,
    containerd: Path | None,
    in_foreground: bool,
) -> None:
    """Make this machine ready to share its cards between containers, without Kubernetes.

    Starts a containerd of our own beside what runs here, and what shares the cards. Where systemd runs, as units;
    elsewhere in the foreground, until Ctrl-C. Containers go on in either case, until `partage down --all`.

    Without an NVIDIA card it simulates one.
    """
    root = root.absolute()
    wishes = Wishes(simulated=simulated, cards=cards, network=network, group=group, containerd=containerd)
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
    """What a supervisor has up already."""
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
        cards = f"{decision.cards} simulated {decision.simulated}" if decision.simulated else "its NVIDIA cards"
        who = f"root and group {decision.group}" if decision.group else "root"
        _say(f"up: {who} may share {cards} between containers")
        _say("try:    partage run --share 300 --memory 4Gi IMAGE")
        _say("        partage ps; partage top")
        _say(f"end:    {ends} leaves containers running; `partage down --all` ends them too")

    return tell


def _say(line: str) -> None:
    click.echo(line, err=True)
