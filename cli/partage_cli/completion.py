"""``partage completion``: prints the shell completion script, which click generates from the commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from partage_cli.main import COMPLETE_VARIABLE, SUBCOMMANDS, cli
from partage_plugins.errors import Refused


@click.command(
    name="completion",
    short_help=SUBCOMMANDS["completion"].summary,
    epilog="""\b
Examples:
  partage completion bash >/etc/bash_completion.d/partage
  partage completion zsh >"${fpath[1]}/_partage"
  partage completion fish >~/.config/fish/completions/partage.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print what a shell reads to complete `partage`: its commands, their options, and the values of those."""
    made = get_completion_class(shell)
    if made is None:
        raise Refused(f"this version of click completes nothing in {shell}: upgrade it")
    click.echo(made(cli, {}, "partage", COMPLETE_VARIABLE).source())
