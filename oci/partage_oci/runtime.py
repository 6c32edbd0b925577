"""Queries and kills a container by its OCI runtime."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec import Struct

from partage_oci.records import EngineRecord

_WITHIN_S: Final = 10.0


class _State(Struct):
    status: str = ""


async def kill_unstarted(record: EngineRecord) -> bool:
    """Kill the container if it was created and not started; returns whether it was."""
    try:
        state = msgspec.json.decode(await _said(record, "state", record.id) or b"{}", type=_State)
    except msgspec.MsgspecError:
        return False
    return state.status == "created" and await _said(record, "kill", record.id, "KILL") is not None


async def _said(record: EngineRecord, *words: str) -> bytes | None:
    """The runtime's output; None if it fails, or takes too long. Raises `OSError` if it can't be run."""
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        record.runtime, "--root", record.root, *words, stdin=quiet, stdout=asyncio.subprocess.PIPE, stderr=quiet
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), _WITHIN_S)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said if process.returncode == 0 else None
