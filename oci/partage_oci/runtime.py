"""Kills a container by its OCI runtime."""

from __future__ import annotations

import asyncio
from typing import Final

from partage_oci.records import EngineRecord

_WITHIN_S: Final = 10.0


async def kill(record: EngineRecord) -> bool:
    """Kill the container, and say whether the runtime did; raises `OSError` if it can't be run."""
    quiet = asyncio.subprocess.DEVNULL
    words = ("--root", record.root, "kill", record.id, "KILL")
    process = await asyncio.create_subprocess_exec(record.runtime, *words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        return await asyncio.wait_for(process.wait(), _WITHIN_S) == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
