"""The arguments and options of ``partage ui``: the page of this machine, for whoever reads the terminal."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from partage_base.daemon import logs
from partage_cli.machine.setup.decision import SIMULATED, is_simulated
from partage_cli.main import SUBCOMMANDS
from partage_isolation.wire.client import BrokerClient
from partage_ui.board import Board
from partage_ui.facts import Facts
from partage_ui.machine import MachineReader, OnceDoor
from partage_ui.service import opened

_SESSION_S: Final = 12 * 3600.0


@click.command(
    name="ui",
    short_help=SUBCOMMANDS["ui"].summary,
    epilog="""\b
Examples:
  sudo partage ui
  sudo partage ui --port 0
  ssh -L 9480:127.0.0.1:9480 MACHINE sudo partage ui
""",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9480, show_default=True, help="Of 127.0.0.1; 0: any that is free."
)
@click.pass_obj
def command(root: Path, *, port: int) -> None:
    """Serve a page of this machine's cards and containers to this machine, and print its address. Needs root.

    The address works once, within ten minutes, for the first browser that opens it. Ctrl-C ends the page. A cluster's
    page is a daemon, `partage-ui`, which the chart installs with `ui.enabled=true`.
    """
    logs.configure("partage", level="warning", log_format="text")
    if is_simulated(root):
        click.echo(SIMULATED, err=True)
    BrokerClient(root).tell()  # reports an unusable broker here, and not in a browser
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(root, port))


async def _serve(root: Path, port: int) -> None:
    board = Board(Facts(at=datetime.now(UTC), is_cluster=False))
    door, reader = OnceDoor(), MachineReader(root, board)
    await reader.read()  # the first page shows it already
    async with AsyncExitStack() as stack:
        site = await opened(board, door, f"127.0.0.1:{port}", stack, session_s=_SESSION_S)
        click.echo(f"http://127.0.0.1:{site.port}/login?token={door.token}")
        click.echo("open this address within ten minutes; it works once. Ctrl-C ends the page", err=True)
        await reader.run()
