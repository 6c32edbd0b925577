"""``partage`` and ``kubectl partage``: finds the subcommand, and turns each expected error into one line.

Subcommands are listed in a table and imported when they are called, so ``partage keys`` does not wait for numpy, and a
node can run every command whose libraries it has.

Exit codes: 0 done, 1 failed, 2 usage error, 3 checked and found wrong, 130 interrupted. stdout is for data, stderr for
people. An unexpected exception is a defect and keeps its traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import click

from partage_plugins.errors import PartageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FAILED: Final = 1
FOUND_WRONG: Final = 3
INTERRUPTED: Final = 130
COMPLETE_VARIABLE: Final = "_PARTAGE_COMPLETE"
"""Environment variable by which a shell requests completions; click reads it."""

_EXAMPLES: Final = """\b
Examples:
  sudo partage up
  docker run --runtime partage -e PARTAGE_SHARE=300 -e PARTAGE_MEMORY=4Gi IMAGE
  kubectl partage nodes
"""


class Subcommand(NamedTuple):
    """The module of a subcommand, and its line in `partage --help`, which is shown without importing it."""

    module: str
    summary: str
    attribute: str = "command"
    """Name of the command in `module`."""


GROUPS: Final[Mapping[str, Mapping[str, Subcommand]]] = {
    "One machine": {
        "docker": Subcommand("partage_cli.docker.command", "Register partage's runtime with Docker and Podman."),
        "down": Subcommand("partage_cli.machine.commands.down", "End what `partage up` started; containers go on."),
        "ps": Subcommand("partage_cli.machine.commands.ps", "Show the containers of this machine that hold a share."),
        "ui": Subcommand("partage_ui.command", "Show this machine's cards and containers in a browser."),
        "up": Subcommand(
            "partage_cli.machine.commands.up", "Let containers of Docker and Podman share the cards here."
        ),
        "wait-for": Subcommand(
            "partage_cli.machine.commands.wait_for", "Run a command once its container's share is free."
        ),
    },
    "Cluster": {
        "audit": Subcommand("partage_cli.audit.command", "Compare what everybody says of who has which cards."),
        "drain": Subcommand(
            "partage_cli.drain.command", "Say which pods leave a node, and whether they fit elsewhere."
        ),
        "explain": Subcommand(
            "partage_cli.explain.command", "Say why a pod is not placed, and what would make it fit."
        ),
        "keys": Subcommand("partage_cli.keys.command", "Make, list and retire the keys that sign allocations."),
        "nodes": Subcommand("partage_cli.nodes.command", "Show the cluster's cards and how they are."),
        "resize": Subcommand("partage_cli.resize.command", "Give a pod that runs another share or more memory."),
        "rollout": Subcommand("partage_cli.rollout.command", "Show how far the installation on the nodes is."),
        "translate": Subcommand(
            "partage_cli.translate.command", "Print manifests of other systems in the native dialect."
        ),
        "usage": Subcommand("partage_cli.usage.command", "Show what pods held of cards, in milli-hours and GiB-hours."),
        "versions": Subcommand("partage_cli.versions.command", "Show which versions of partage's daemons run where."),
    },
    "Node, in a cluster or alone": {
        "doctor": Subcommand("partage_cli.doctor.command", "Look for what is wrong on this node, and say what to do."),
        "limits": Subcommand("partage_cli.limits.command", "Show and lower what a pod's containers may hold here."),
        "node": Subcommand("partage_cli.node.command", "Put partage on this node, switch it, let its cards rest."),
        "resume": Subcommand("partage_cli.suspend.command", "Let a suspended pod go on.", "resume"),
        "support-bundle": Subcommand(
            "partage_cli.support.command", "Write findings, versions and logs to a file; no secrets."
        ),
        "suspend": Subcommand(
            "partage_cli.suspend.command", "Take a pod's memory from its card until it is resumed.", "suspend"
        ),
        "top": Subcommand("partage_cli.top.command", "Watch the containers with limits, here or on all nodes."),
    },
    "Shell and manual": {
        "completion": Subcommand("partage_cli.completion", "Print what bash, zsh or fish reads to complete partage."),
        "man": Subcommand("partage_cli.manual", "Print or write the manual pages."),
    },
    "Simulation": {
        "simgpu": Subcommand("partage_cli.simgpu", "Make, load, break and remove simulated GPUs."),
        "simulate": Subcommand("partage_cli.simulate.command", "Replay pods on a fleet, and compare policies."),
    },
}
"""The groups in the order of `--help`."""
SUBCOMMANDS: Final = {name: found for group in GROUPS.values() for name, found in group.items()}

_AS_DOCKER: Final = (
    "attach",
    "events",
    "exec",
    "images",
    "inspect",
    "load",
    "logs",
    "pull",
    "rm",
    "start",
    "stop",
    "wait",
)
_RUN: Final = "docker run --runtime partage -e PARTAGE_SHARE=300 -e PARTAGE_MEMORY=4Gi IMAGE"
_REMOVED: Final[Mapping[str, str]] = {
    **{name: f"docker {name}" for name in _AS_DOCKER},
    "grant": _RUN,
    "grants": "partage ps",
    "revoke": "docker rm -f CONTAINER",
    "run": _RUN,
}
"""Replacements for commands that existed one release ago."""


class RemovedCommand(click.ClickException):
    """One line with the replacement of a removed command; exits with the code of a usage error."""

    exit_code = 2


_EXTRAS: Final[Mapping[str, str]] = {
    "numpy": "decides as the scheduler does, which needs numpy: pip install 'partage[scheduler]'",
    "partage_simgpu": "simulates cards, which come apart from the rest: pip install 'partage[simulated]'",
}
"""Modules that only an extra installs: why a command needs one, and how to install it."""


def lacking(name: str, error: ModuleNotFoundError) -> Exception:
    """The error for a missing module: which of our extras the command needs, or the original error, a defect."""
    what = _EXTRAS.get(error.name or "")
    return error if what is None else click.ClickException(f"partage {name} {what}")


class LazyGroup(click.Group):
    """A click group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        found = SUBCOMMANDS.get(cmd_name)
        if found is None:
            return None
        try:
            command: click.Command = getattr(importlib.import_module(found.module), found.attribute)
        except ModuleNotFoundError as error:
            raise lacking(cmd_name, error) from error
        return command

    def invoke(self, ctx: click.Context) -> object:
        """As in click; also catches a missing extra that a command notices only while it runs."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            raise lacking(ctx.invoked_subcommand or "", error) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with suggestions in every click version that we support."""
        if args[0] in _REMOVED and not ctx.resilient_parsing:
            raise RemovedCommand(f"`partage {args[0]}` is gone: {_REMOVED[args[0]]} (docs/docker.md)")
        if args[0] not in SUBCOMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415  for a mistake alone

            near = get_close_matches(args[0], SUBCOMMANDS)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {' or '.join(near)}?" if near else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from the table, without importing any command."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  for shells alone

        found = [(name, each.summary) for name, each in sorted(SUBCOMMANDS.items()) if name.startswith(incomplete)]
        return [CompletionItem(name, help=summary) for name, summary in found] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        """List the table, so that `--help` imports nothing."""
        width = max(map(len, SUBCOMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), found.summary) for name, found in group.items()])


def _print_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:  # noqa: FBT001 (click's)
    if not asked or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  a third of a command's start

    try:
        click.echo(f"partage {version('partage')}")
    except PackageNotFoundError:
        click.echo("partage, version unknown: it runs from its source and is not installed")
    context.exit()


@click.group(cls=LazyGroup, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path("/"),
    envvar="PARTAGE_ROOT",
    help="Where paths such as etc/partage begin.  [default: /]",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_context
def cli(context: click.Context, root: Path) -> None:
    """Share GPUs on one machine or in Kubernetes: fair shares, hard limits, signed allocations."""
    context.obj = root


def colour() -> bool | None:
    """The `color` argument for `click.echo`; None lets click colour terminals only."""
    return False if os.environ.get("NO_COLOR") else None


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(_flushed(_run()))


def _run() -> int:
    try:
        code = cli.main(prog_name=_name(), standalone_mode=False)
    except click.Abort as aborted:
        return INTERRUPTED if isinstance(aborted.__cause__, KeyboardInterrupt) else FAILED
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _failed(error, error.format_message(), error.exit_code)
    except PartageError as error:
        return _failed(error, str(error))
    except OSError as error:
        return _failed(error, _of_the_system(error))
    return code if isinstance(code, int) else 0


def _flushed(code: int) -> int:
    """Flush stdout. A reader that went away (`partage keys list | head -1`) is not worth a message."""
    if sys.stdout is None:  # stdout was closed before the start
        return code
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit has a reader
        if isinstance(error, BrokenPipeError):
            return code or FAILED
        return code or _failed(error, f"cannot write the output: {_of_the_system(error)}")
    return code


def _name() -> str:
    """The program's name; kubectl names its plugins `kubectl-…`."""
    return "kubectl partage" if Path(sys.argv[0]).name.startswith("kubectl") else "partage"


def _failed(error: Exception, message: str, code: int = FAILED) -> int:
    """Print one line with the error's code, which docs/troubleshooting.md explains."""
    from partage_cli.codes import code_of  # noqa: PLC0415  for what went wrong alone

    known = code_of(type(error))
    click.echo("partage: " + " ".join(message.split("\n")) + (f" [{known.code}]" if known else ""), err=True)
    return code


def _of_the_system(error: OSError) -> str:
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{error.strerror or error}"
