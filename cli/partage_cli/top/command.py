"""The words and options of ``partage top``."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from partage_base.daemon.settings import host_name
from partage_cli.machine.setup.decision import SIMULATED, is_simulated
from partage_cli.main import SUBCOMMANDS
from partage_cli.top.live import show
from partage_cli.top.shown import Frame, as_json, as_lines
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import Told


@click.command(
    name="top",
    short_help=SUBCOMMANDS["top"].summary,
    epilog="""\b
Examples:
  sudo partage top
  sudo partage top --once
  sudo partage top --once -o json | jq '.containers[].cards[] | select(.refused > 0)'
""",
)
@click.option("--once", is_flag=True, help="Show it once and end; so it is where the output is no terminal.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.1, 3600),
    default=1,
    show_default=True,
    metavar="SECONDS",
    help="How often it is drawn again.",
)
@click.pass_obj
def command(root: Path, *, once: bool, output: str, every_s: float) -> None:
    """Show this node's cards and the containers with limits on them, as the broker counts. Needs root; `q` ends it.

    MEMORY is what is charged to a container: what its programs hold and what is lent to them, and OVERHEAD, which is
    contexts and the like. REFUSED is how often more was asked for than LIMIT allows, since the broker was started. GOT
    and WANTED are parts of the card's time over the last ten seconds: in which the container held the card, and in
    which it held it or waited for it; SHARE is what it is guaranteed, and its ceiling. With `-o json` and without
    `--once` there is one line each time.
    """
    notice = SIMULATED if is_simulated(root) else ""
    broker = BrokerClient(root)
    told = broker.tell()
    if output == "json":
        if notice:
            click.echo(notice, err=True)
        _print_json(broker, told, once=once, every_s=every_s)
    elif once or not sys.stdout.isatty():
        click.echo("\n".join(as_lines(told, replace(_frame(), notice=notice))), color=_colour())
    else:
        _watch(broker, told, every_s, notice)


def _print_json(broker: BrokerClient, told: Told, *, once: bool, every_s: float) -> None:
    click.echo(as_json(told, _frame(), indented=once), nl=False)
    while not once:
        time.sleep(every_s)
        click.echo(as_json(broker.tell(), _frame(), indented=False), nl=False)


def _watch(broker: BrokerClient, told: Told, every_s: float, notice: str) -> None:
    """A broker that goes away, as for an upgrade, is waited for; until then the last that it told stands there."""
    last = told

    def draw() -> list[str]:
        nonlocal last
        try:
            last, trouble = broker.tell(), ""
        except ControlError as error:
            trouble = str(error)
        size = shutil.get_terminal_size()
        frame = replace(_frame(size.columns, size.lines), notice=notice)
        lines = as_lines(last, frame, trouble=trouble)
        return lines if _colour() is None else list(map(click.unstyle, lines))

    try:
        show(draw, every_s)
    except KeyboardInterrupt:
        return


def _frame(width: int = 0, height: int = 0) -> Frame:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    at = datetime.now().astimezone()
    return Frame(node=host_name(), at=at, width=width, height=height, blocks=encoding.startswith("utf"))


def _colour() -> bool | None:
    """None: where somebody sees them."""
    return False if os.environ.get("NO_COLOR") else None
