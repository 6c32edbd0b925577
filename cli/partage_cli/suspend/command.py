"""The command line of ``partage suspend`` and ``partage resume``."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import click

from partage_cli.limits.choice import Target, chosen
from partage_cli.machine.setup.decision import SIMULATED, is_simulated
from partage_cli.main import SUBCOMMANDS
from partage_cli.tables import amount, pod_name
from partage_isolation.wire.client import BrokerClient
from partage_isolation.wire.messages import Suspend, Suspended
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.places import SUSPENDED_FILE
from partage_plugins.codecs.suspension import READ_REPORTS
from partage_plugins.errors import DecodeError, Refused

_LOOK_S: Final = 0.1
_TELL_S: Final = 2.0

_pod = click.argument("pod")
_container = click.option("--container", metavar="NAME", help="Only this container.  [default: all]")
_wait = click.option("--wait/--no-wait", default=True, show_default=True, help="Until its memory is where it is to be.")
_timeout = click.option(
    "--timeout", "timeout_s", type=float, default=120.0, show_default=True, help="Seconds, at most."
)


@click.command(
    name="suspend",
    short_help=SUBCOMMANDS["suspend"].summary,
    epilog="""\b
Examples:
  sudo partage suspend train-0
  sudo partage suspend team-a/train-0 --container main --no-wait
""",
)
@_pod
@_container
@_wait
@_timeout
@click.pass_obj
def suspend(root: Path, *, pod: str, container: str | None, wait: bool, timeout_s: float) -> None:
    """Take the memory of POD from its card, and let it compute no more until ``partage resume``. Needs root.

    POD is a name, NAMESPACE/NAME or a uid. Its programs wait; they lose nothing. What was on the card lies in the
    container's own host memory meanwhile, also over restarts of the broker. Memory that does not move by itself the
    driver takes away, from branch 570 on; where it can't, the pod runs on.
    """
    _ask(root, pod, container, is_on=True, wait_s=timeout_s if wait else 0.0)


@click.command(
    name="resume",
    short_help=SUBCOMMANDS["resume"].summary,
    epilog="""\b
Examples:
  sudo partage resume train-0
""",
)
@_pod
@_container
@_wait
@_timeout
@click.pass_obj
def resume(root: Path, *, pod: str, container: str | None, wait: bool, timeout_s: float) -> None:
    """Let POD, which was suspended, have its memory back on the card, and its turns. Needs root.

    It comes back when it is its turn: others may have the room until then.
    """
    _ask(root, pod, container, is_on=False, wait_s=timeout_s if wait else 0.0)


def _ask(root: Path, pod: str, container: str | None, *, is_on: bool, wait_s: float) -> None:
    if is_simulated(root):
        click.echo(SIMULATED, err=True)
    broker = BrokerClient(root)
    targets = chosen(broker.tell(), pod, container=container, card=None)
    if not is_on:
        _require_not_by_scheduler(root, pod, targets)
    ends_s = time.monotonic() + wait_s
    told_s = time.monotonic()
    while True:
        answers = {key: broker.suspend(Suspend(key=key, is_on=is_on)) for key in _keys(targets)}
        is_done = all(each.is_done for each in answers.values())
        if is_done or time.monotonic() >= ends_s:
            break
        if time.monotonic() - told_s >= _TELL_S:
            told_s = time.monotonic()
            click.echo(_progress(pod, answers.values(), is_on=is_on), err=True)
        time.sleep(_LOOK_S)
    for target in {each.grantee.key: each for each in targets}.values():
        click.echo(_line(target, answers[target.grantee.key]))
    if not is_done and wait_s:
        raise Refused(f"pod {pod} is on its way after {wait_s:g} s; `partage top` shows how far, asking again waits on")


def _require_not_by_scheduler(root: Path, pod: str, targets: Sequence[Target]) -> None:
    """Refuse for a pod whose room the scheduler gives to another."""
    try:
        reports = READ_REPORTS.read((root / SUSPENDED_FILE).read_bytes())
    except (OSError, DecodeError):  # the scheduler has no report of it either
        return
    if any(report.is_done for each in targets if (report := reports.get(each.grantee.pod.uid)) is not None):
        raise Refused(
            f"pod {pod} is suspended by the scheduler, which resumes it when its room is free again; `partage explain` "
            "says what it waits for"
        )


def _keys(targets: Sequence[Target]) -> tuple[ContainerKey, ...]:
    return tuple(dict.fromkeys(target.grantee.key for target in targets))


def _progress(pod: str, answers: Collection[Suspended], *, is_on: bool) -> str:
    resident = sum(each.resident_bytes for each in answers)
    moved = sum(each.moved_bytes for each in answers)
    left = resident if is_on else moved
    return f"{pod}: {amount(left)} of {amount(resident + moved)} to go"


def _line(target: Target, answer: Suspended) -> str:
    name = f"{pod_name(target.grantee.pod.namespace, target.grantee.pod.name)} {target.grantee.name}"
    whole = answer.resident_bytes + answer.moved_bytes
    if answer.is_on:
        return f"{name}: suspended, {amount(answer.moved_bytes)} of {amount(whole)} on the host"
    return f"{name}: resumed, {amount(answer.resident_bytes)} of {amount(whole)} on the card"
