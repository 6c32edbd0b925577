"""How the commands of one machine reach its manager, and what they say of it in the same words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from partage_cli.machine.wire.client import Conversation, Denied, conversation
from partage_cli.machine.wire.messages import DonePods, Ps
from partage_cli.main import FAILED
from partage_cli.tables import printable
from partage_plugins.errors import Refused

OURS_FAILED: Final = 125
"""As docker's: the fault is not the container's, whose own exit code is passed on."""


class NotRun(click.ClickException):
    """One line, and docker's exit code for it."""

    exit_code = OURS_FAILED


@contextmanager
def manager(root: Path) -> Generator[Conversation]:
    """A conversation, after a word on stderr where cards are simulated."""
    with conversation(root) as (talk, hello):
        if hello.simulated:
            from partage_cli.machine.setup.decision import SIMULATED  # noqa: PLC0415  for such machines alone

            say(SIMULATED)
        yield talk


@contextmanager
def meant(talk: Conversation, name: str) -> Generator[None]:
    """Where the manager does not know the name: which ones are like it."""
    try:
        yield
    except Denied as denied:
        if denied.code != "unknown-name":
            raise
        near = _near(talk, name)
        raise Refused(f"{denied}; did you mean {' or '.join(near)}?" if near else str(denied)) from None


def of_each(root: Path, names: Sequence[str], ask: Callable[[Conversation, str], str]) -> int:
    """Asks for one after the other and prints what is answered; one that fails does not keep the others from it."""
    code = 0
    with manager(root) as talk:
        for name in names:
            try:
                with meant(talk, name):
                    click.echo(ask(talk, name))
            except Refused as refused:
                say(f"partage: {refused}")
                code = FAILED
    return code


def say(line: str) -> None:
    click.echo(printable(line), err=True)


def _near(talk: Conversation, name: str) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415  for a mistake alone

    names = (pod.name for pod in talk.told(Ps(all=True), DonePods).pods)
    return get_close_matches(name, [each for each in names if each != name])  # its own where a container is unknown
