"""Installs the units, and has systemd start and stop them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_cli.machine.setup.decision import Decision
from partage_cli.machine.setup.errors import NotStarted
from partage_cli.machine.setup.foreground import come_up
from partage_cli.machine.setup.services import Service, services
from partage_cli.machine.setup.units import PREFIX, TARGET, unit_name, units

Say = Callable[[str], None]
FOLDER: Final = "etc/systemd/system"
_RUNS: Final = Path("/run/systemd/system")
_LOG: Final = ("--log-level", "info", "--log-format", "text")
_SHOWN: Final = 300


def runs_here(root: Path) -> bool:
    """Whether systemd runs, as sd_booted(3) checks; it manages units of the real root only."""
    return _RUNS.is_dir() and root == Path("/")


async def start(root: Path, decision: Decision, *, say: Say) -> None:
    """Start the units, restarting changed ones; returns once containers can be placed. Raises `NotStarted`."""
    every = services(root, simulated=bool(decision.simulated), python=sys.executable, log=_LOG)
    texts = units(every)
    changed = [name for name, text in texts.items() if _put(root / FOLDER / name, text)]
    if changed:
        await _systemctl("daemon-reload")
    await _systemctl("enable", "--quiet", TARGET)
    if again := [name for name in changed if name != TARGET]:
        await _systemctl("restart", "--no-block", *again)
    await _systemctl("start", TARGET)
    say(f"systemd keeps {TARGET}: {' '.join(each.name for each in every)}; journalctl -u '{PREFIX}*' tells more")
    await come_up(root, [each.name for each in every])


async def stop(root: Path, every: Iterable[Service]) -> None:
    """Stop the units that exist, the last service first."""
    names = [TARGET, *(unit_name(service) for service in reversed(tuple(every)))]
    if present := [name for name in names if (root / FOLDER / name).exists()]:
        await _systemctl("stop", *present)


async def remove(root: Path, every: Iterable[Service]) -> None:
    if (root / FOLDER / TARGET).exists():
        await _systemctl("disable", "--quiet", TARGET)
    for name in (TARGET, *map(unit_name, every)):
        (root / FOLDER / name).unlink(missing_ok=True)
    await _systemctl("daemon-reload")


def _put(path: Path, text: str) -> bool:
    """Write a unit file; returns whether its text changed."""
    if path.is_file() and path.read_text() == text:
        return False
    write_whole(path, text.encode(), mode=0o644)
    return True


async def _systemctl(*words: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run, ("systemctl", *words), capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise NotStarted(f"`systemctl {' '.join(words)}` failed: {done.stderr.strip()[-_SHOWN:]}")
