"""The command line of ``partage wait-for``."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Final

import click

from partage_cli.main import SUBCOMMANDS
from partage_cli.tables import printable
from partage_oci.client import AgentAway, AgentClient
from partage_oci.words import CARDS, LIMIT, MEMORY, SHARE
from partage_plugins.errors import Refused

_AGAIN_S: Final = 1.0


@click.command(
    name="wait-for",
    short_help=SUBCOMMANDS["wait-for"].summary,
    epilog="""\b
Examples:
  sudo partage wait-for --share 300 --memory 4Gi -- \\
      docker run --runtime partage -e PARTAGE_SHARE -e PARTAGE_MEMORY IMAGE
""",
)
@click.option("--share", type=click.IntRange(0), metavar="MILLI", help="As PARTAGE_SHARE.")
@click.option("--limit", type=click.IntRange(0), metavar="MILLI", help="As PARTAGE_LIMIT.")
@click.option("--memory", metavar="QUANTITY", help="As PARTAGE_MEMORY.")
@click.option("--cards", type=click.IntRange(1), metavar="NUMBER", help="As PARTAGE_CARDS.")
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def command(  # noqa: PLR0913  one parameter for each word of the command line
    root: Path,
    *,
    share: int | None,
    limit: int | None,
    memory: str | None,
    cards: int | None,
    words: tuple[str, ...],
) -> None:
    """Wait until a container with these amounts fits, then run COMMAND in place of this one. Needs root.

    Of those that wait, who came first is first. Its room is then kept for 30 seconds, for the first container that is
    created with the same amounts, whoever creates it. A container that does not wait may take room before its turn.
    COMMAND has the amounts as variables, which `docker run -e PARTAGE_SHARE -e PARTAGE_MEMORY` passes on.
    """
    said = {SHARE: share, LIMIT: limit, MEMORY: memory, CARDS: cards}
    asked = {name: str(value) for name, value in said.items() if value is not None}
    program = shutil.which(words[0])
    if program is None:
        raise Refused(f"there is no program {words[0]!r:.80}; name one, after --")
    _wait(AgentClient(root), tuple(f"{name}={text}" for name, text in asked.items()))
    environment = {name: text for name, text in os.environ.items() if name not in said}
    os.execve(program, words, {**environment, **asked})  # noqa: S606  that is what is asked for


def _wait(agent: AgentClient, env: tuple[str, ...]) -> None:
    """Wait in the agent's queue. If the agent goes away, as for an upgrade, it retries, but may lose its place."""
    said = ""

    def waits(why: str) -> None:
        nonlocal said
        if why != said:
            click.echo(f"waiting: {printable(why)}", err=True)
        said = why

    while True:
        try:
            agent.wait(env, waits)
        except AgentAway as away:
            if not said:
                raise
            waits(str(away))
            time.sleep(_AGAIN_S)
        else:
            return
