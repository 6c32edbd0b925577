"""``partage exec`` and ``partage attach``, and the terminal of ``partage run -it``: streams that go both ways.

What a container without a terminal writes comes from its log, which has it from the first byte; only its input is
attached. A terminal is attached with its output, after the lines that were written before.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

import click

from partage_cli.machine.commands.connection import NotRun, manager, meant, say
from partage_cli.machine.commands.foreground import Foreground, Screen
from partage_cli.machine.commands.signals import Signals
from partage_cli.machine.pods.pod import Container
from partage_cli.machine.runtime.streams import Asked, StreamEnd, StreamFailed, streamed
from partage_cli.machine.runtime.terminal import Terminal, written
from partage_cli.machine.wire.client import Denied, conversation
from partage_cli.machine.wire.messages import (
    Attach,
    DoneInspect,
    DonePods,
    DoneStream,
    Exec,
    Inspect,
    LogLine,
    Logs,
    PodStatus,
    Ps,
)
from partage_cli.main import SUBCOMMANDS
from partage_plugins.errors import PartageError

_STDIN: Final = 0
_DESCRIPTORS: Final = {"stdout": 1, "stderr": 2}


@click.command(
    name="exec",
    short_help=SUBCOMMANDS["exec"].summary,
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  partage exec train nvidia-smi
  partage exec -it train bash
""",
)
@click.argument("name")
@click.argument("argv", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-i", "--interactive", is_flag=True, help="Pass on what is typed, to its end.")
@click.option("-t", "--tty", is_flag=True, help="Give it a terminal.")
@click.option("-c", "--container", default="", metavar="NAME", help="Of a pod with several.  [default: the first]")
@click.pass_obj
def execute(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path, *, name: str, argv: tuple[str, ...], interactive: bool, tty: bool, container: str
) -> int:
    """Run COMMAND in NAME, which runs, and end with its exit code; 125 where it was not run.

    With a terminal, Ctrl-P Ctrl-Q lets go of it.
    """
    if tty and interactive and not sys.stdin.isatty():
        raise click.UsageError("--tty: the input is no terminal; leave it out")
    argv = argv[1:] if argv[0] == "--" else argv
    question = Exec(name=name, container=container, argv=argv, tty=tty, stdin=interactive)
    try:
        with manager(root) as talk, meant(talk, name):
            url = talk.told(question, DoneStream).url
        end = asyncio.run(_joined(url, tty=tty, interactive=interactive))
    except BrokenPipeError:
        raise
    except (PartageError, OSError) as error:
        raise NotRun(str(error)) from None
    return end.exit_code or 0


@click.command(name="attach", short_help=SUBCOMMANDS["attach"].summary)
@click.argument("name")
@click.pass_obj
def attach(root: Path, *, name: str) -> int:
    """Show what NAME writes from now on, pass on what is typed and signals, and end as it ends.

    With a terminal, Ctrl-P Ctrl-Q lets go of it.
    """
    try:
        with Signals() as signals:
            with manager(root) as talk, meant(talk, name):
                found = talk.told(Inspect(name=name), DoneInspect)
            signals.kept = True
            return in_front(root, found.pod, signals, found.record.spec.containers, tail=0)
    except BrokenPipeError:
        raise
    except (PartageError, OSError) as error:
        raise NotRun(str(error)) from None


def in_front(
    root: Path, pod: PodStatus, signals: Signals, asked: tuple[Container, ...], *, tail: int | None = None
) -> int:
    """Until it has ended, or is let go of; its exit code. Input is passed on to a pod's only container."""
    only = asked[0] if len(asked) == 1 else None
    if only is None or not only.stdin:
        return Foreground(root, pod, signals, tail=tail).run()
    if only.tty and sys.stdin.isatty():
        return _on_terminal(root, pod, signals, tail=tail)
    with _Input(root, pod):
        return Foreground(root, pod, signals, tail=tail).run()


def _on_terminal(root: Path, pod: PodStatus, signals: Signals, *, tail: int | None) -> int:
    with conversation(root) as (talk, _):
        screen = Screen(named=False)
        for line in talk.stream(Logs(name=pod.uid, tail=tail)):
            if isinstance(line, LogLine):
                screen.show("", line)
        screen.flush()
        try:
            url = talk.told(Attach(name=pod.uid), DoneStream).url
            end = asyncio.run(_joined(url, tty=True, interactive=True))
        except (Denied, StreamFailed) as error:
            if _runs(root, pod):
                raise
            if isinstance(error, Denied):  # it ended before, perhaps after the lines above
                return Foreground(root, pod, signals, written=False).run()
            end = StreamEnd(how="exited")
    if end.how == "detached":
        say(f"left {pod.name} running")
        return 0
    return Foreground(root, pod, signals, written=False).run()


def _runs(root: Path, pod: PodStatus) -> bool:
    with conversation(root) as (talk, _):
        return talk.told(Ps(names=(pod.uid,), all=True), DonePods).pods[0].phase == "running"


class _Input:
    """Ours, passed on beside all else until one of the two ends."""

    def __init__(self, root: Path, pod: PodStatus) -> None:
        self._root, self._pod = root, pod
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._passed_on())
        self._thread = threading.Thread(target=self._run, name="input")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            try:
                self._loop.run_until_complete(self._task)
            except (PartageError, OSError) as error:
                with contextlib.suppress(PartageError):  # who follows the pod hears of that
                    if _runs(self._root, self._pod):
                        say(f"what is typed is passed on no longer: {error}")

    async def _passed_on(self) -> None:
        with conversation(self._root) as (talk, _):
            url = talk.told(Attach(name=self._pod.uid, output=False), DoneStream).url
        await streamed(url, Asked(stdin=True, tty=False, output=False), write=_write, stdin=_STDIN)


async def _joined(url: str, *, tty: bool, interactive: bool) -> StreamEnd:
    terminal = Terminal(_STDIN) if tty and interactive else None
    asked = Asked(stdin=interactive, tty=tty)
    return await streamed(url, asked, write=_write, stdin=_STDIN if interactive else None, terminal=terminal)


async def _write(stream: Literal["stdout", "stderr"], data: bytes) -> None:
    await written(_DESCRIPTORS[stream], data)
