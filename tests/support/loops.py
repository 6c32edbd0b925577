"""The event loops that our daemons run on, and tests that are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final, ParamSpec

import uvloop

P = ParamSpec("P")
LOOPS: Final[dict[str, Callable[[Coroutine[Any, Any, None]], None]]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}

uvloop.new_event_loop().close()  # libuv's pipe for signals is made once a process and stays: no test's leak


def on_uvloop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Runs the test on the loop that crishim runs on."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test(*args, **kwargs))

    return run
