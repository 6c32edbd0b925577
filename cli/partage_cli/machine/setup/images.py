"""Brings the sandbox's image into our containerd, which then needs no registry for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from partage_cli.machine.places import CONTAINERD_SOCKET
from partage_cli.machine.setup.containerd import PAUSE_IMAGE
from partage_cli.machine.setup.decision import Programs
from partage_cli.machine.setup.errors import NotStarted
from partage_cli.machine.setup.pause import archive


async def bring_pause(root: Path, programs: Programs) -> None:
    """Where it is not there yet; containerd must answer. Raises `NotStarted`."""
    if PAUSE_IMAGE in (await _ctr(root, programs, "images", "ls", "-q")).decode().split():
        return
    await _ctr(root, programs, "images", "import", "-", given=archive(os.uname().machine))


async def _ctr(root: Path, programs: Programs, *words: str, given: bytes = b"") -> bytes:
    ctr = Path(programs.containerd).with_name("ctr")
    process = await asyncio.create_subprocess_exec(
        str(ctr),
        *("--address", str(root / CONTAINERD_SOCKET), "--namespace", "k8s.io", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate(given)
    if process.returncode:
        why = errors.decode(errors="replace").strip()[-300:]
        raise NotStarted(f"`ctr {' '.join(words)}` of {ctr} failed: {why}")
    return said
