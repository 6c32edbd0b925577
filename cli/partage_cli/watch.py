"""The option ``--watch``: redraws a command's output every two seconds on the terminal's alternate screen."""

from __future__ import annotations

import functools
import io
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime
from typing import Any, Final

import click

from partage_cli.main import colour
from partage_cli.progress import silent
from partage_cli.tables import printable
from partage_cli.top.columns import cut
from partage_cli.top.live import show
from partage_plugins.errors import PartageError

_EVERY_S: Final = 2.0
_AS_TABLES: Final = frozenset(("table", "wide"))
_TABLES_ALONE: Final = "--watch draws tables: leave -o and --wait out"
WATCH: Final = click.option(
    "-w", "--watch", "is_watched", is_flag=True, help="Draw it again every two seconds; q ends."
)


class _Terminal(io.StringIO):
    """Captures a command's output, and claims to be a terminal so that colours are kept."""

    def isatty(self) -> bool:
        return True


def watchable(command: Callable[..., object]) -> Callable[..., object]:
    """The command with the option `--watch`, which works for tables only."""

    @WATCH
    @functools.wraps(command)
    def watched(*arguments: Any, is_watched: bool, **words: Any) -> object:  # noqa: ANN401  (the command's own)
        if not is_watched:
            return command(*arguments, **words)
        if words.get("wait"):
            raise click.UsageError(_TABLES_ALONE)
        return watch(functools.partial(command, *arguments, **words), words.get("output", "table"))

    return watched


def watch(command: Callable[[], object], output: str) -> int:
    """Redraw until the user quits. An error is shown in red above the last output that succeeded."""
    if output not in _AS_TABLES:
        raise click.UsageError(_TABLES_ALONE)
    if not sys.stdout.isatty():
        raise click.UsageError("--watch draws on a terminal, and the output is none")
    last: list[str] = []

    def draw() -> list[str]:
        nonlocal last
        trouble = list[str]()
        try:
            last = _said(command)
        except (PartageError, OSError) as error:
            if not last:
                raise
            trouble.append(click.style(printable(str(error)), fg="red"))
        size = shutil.get_terminal_size()
        lines = [f"{datetime.now(UTC).astimezone():%H:%M:%S}   q ends", *trouble, *last]
        if more := len(lines) - size.lines:
            lines = (
                lines if more < 0 else [*lines[: size.lines - 1], f"and {more + 1} more: a higher window shows them"]
            )
        return [cut(each if colour() is None else click.unstyle(each), size.columns) for each in lines]

    with suppress(KeyboardInterrupt):
        show(draw, _EVERY_S)
    return 0


def _said(command: Callable[[], object]) -> list[str]:
    """The command's stdout, followed by its stderr."""
    out, err = _Terminal(), _Terminal()
    with silent(), redirect_stdout(out), redirect_stderr(err):
        command()
    return [*out.getvalue().splitlines(), *err.getvalue().splitlines()]
