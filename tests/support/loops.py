"""The event loops that our daemons run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import uvloop

LOOPS: Final[dict[str, Callable[[Coroutine[Any, Any, None]], None]]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}

uvloop.new_event_loop().close()  # libuv's pipe for signals is made once a process and stays: no test's leak
