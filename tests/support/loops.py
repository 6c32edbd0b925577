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

uvloop.new_event_loop().close()  # libuv creates its signal pipe once per process and keeps it: not a leak of a test
