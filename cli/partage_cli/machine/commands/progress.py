"""What the manager is doing for a command, on stderr: drawn over itself on a terminal, else one line a step."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final, Self

import click

from partage_cli.machine.wire.messages import Progress
from partage_cli.tables import amount, printable

_STEPS: Final = {"queue": "waiting", "pull": "pulling", "load": "loading", "place": "placing", "start": "starting"}
_SAID_ONCE: Final = frozenset(("queue", "pull", "load"))
"""The others are over before a line of them is read."""
_CLEARED: Final = "\r\x1b[2K"


class ProgressLine:
    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._drawn = sys.stderr.isatty()
        self._said = set[tuple[str, str]]()
        self._stands = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        if self._stands:
            click.echo(_CLEARED, err=True, nl=False)
            self._stands = False

    def tell(self, progress: Progress) -> None:
        if self._quiet:
            return
        if self._drawn:
            click.echo(_CLEARED + words(progress), err=True, nl=False)
            self._stands = True
        elif progress.step in _SAID_ONCE and (progress.step, progress.text) not in self._said:
            self._said.add((progress.step, progress.text))
            click.echo(words(progress, amounts=False), err=True)


def words(progress: Progress, *, amounts: bool = True) -> str:
    """`pulling docker.io/library/busybox:latest: 12 MiB of 40 MiB`."""
    done, total = progress.done_bytes, progress.total_bytes
    much = amount(done) if done is not None else ""
    if much and total:
        much += f" of {amount(total)}"
    told = [f"{_STEPS[progress.step]} {progress.text}".rstrip(), *([much] if much and amounts else [])]
    return printable(": ".join(told))
