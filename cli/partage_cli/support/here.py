"""This machine's part of a support bundle: findings, settings, cards, their holders, and the journal of our units."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Final, cast

import click

from partage_base.version import VERSION
from partage_cli.doctor.command import look
from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.doctor.output import report
from partage_cli.nodes.reports import of_node
from partage_cli.support.archive import Bundle
from partage_cli.support.log_lines import kept_lines
from partage_cli.support.redaction import plain_json
from partage_cli.support.settings_told import settings_told
from partage_isolation.wire.client import BrokerClient
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.errors import PartageError, Refused

_RELEASE: Final = "etc/os-release"
_RELEASE_KEYS: Final = ("ID", "VERSION_ID")
_JOURNAL: Final = ("journalctl", "--no-pager", "--output", "cat", "--lines", "5000", "--unit", "partage-*")
_JOURNAL_WITHIN_S: Final = 20.0
_JOURNAL_BYTES: Final = 8 << 20


def gather(bundle: Bundle, root: Path, *, kubeconfig: Path | None, namespace: str, logs: bool) -> None:
    """Add each part independently: a missing one is recorded and does not affect the others."""

    def findings() -> bytes:
        found = look(root, driver_root=None, node_name=None, kubeconfig=kubeconfig, namespace=namespace)
        return plain_json(report(found))

    parts: dict[str, Callable[[], bytes]] = {
        "here/system.json": lambda: plain_json(_system(root)),
        "here/doctor.json": findings,
        "here/settings.json": lambda: plain_json(settings_told(root)),
        "here/inventory.json": lambda: _inventory(root),
        "here/top.json": lambda: plain_json(BrokerClient(root).tell()),
    }
    if logs:
        parts["here/journal.jsonl"] = lambda: _journal(bundle, root)
    for name, made in parts.items():
        try:
            bundle.add(name, made())
        except (PartageError, OSError, click.ClickException) as error:
            bundle.lacks(name, str(error))


def _system(root: Path) -> dict[str, str]:
    release = text_of(root / _RELEASE)
    lines = [] if isinstance(release, Unseen) else release.splitlines()
    told = {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}
    return {
        "partage": VERSION,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        **{f"system {name.lower()}": told[name] for name in _RELEASE_KEYS if name in told},
    }


def _inventory(root: Path) -> bytes:
    text = text_of(root / INVENTORY_FILE)
    if isinstance(text, Unseen):
        raise Refused(str(text))
    return plain_json(of_node("here", text, None))


def _journal(bundle: Bundle, root: Path) -> bytes:
    if root != Path("/"):
        raise Refused("the journal is the machine's, and this is a folder")
    kept = kept_lines(said_by(_JOURNAL, within_s=_JOURNAL_WITHIN_S))
    if kept.left_out:
        bundle.lacks("here/journal.jsonl: some lines", f"{kept.left_out} lines are not in our daemons' form")
    return kept.text


def said_by(argv: Iterable[str], *, within_s: float) -> list[bytes]:
    """A program's output up to a size limit; the program is killed then, or after the timeout."""
    with subprocess.Popen(  # noqa: S603  of the machine, with words of ours
        [*argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_quiet()
    ) as program:
        timer = threading.Timer(within_s, program.kill)
        timer.start()
        try:
            said = cast("IO[bytes]", program.stdout).read(_JOURNAL_BYTES)
        finally:
            timer.cancel()
            timer.join()
            program.kill()
    return said.splitlines()


def _quiet() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
