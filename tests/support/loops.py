"""The event loops that our daemons run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import uvloop

LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop] | None]] = {
    "asyncio": None,
    "uvloop": uvloop.new_event_loop,
}

uvloop.new_event_loop().close()  # libuv's pipe for signals is made once a process and stays: no test's leak
