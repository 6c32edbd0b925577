"""Reinstalls the library when the node's driver changes, since it has the names that its driver exports.

This runs in a process of its own at ordinary priority: parsing a driver takes a second of processor time, and programs
wait for the broker meanwhile. Until the new library is complete, and where that fails, new containers get the previous
one.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import structlog

from partage_isolation.settings import BrokerSettings
from partage_isolation.urgency import goes_as_others

_WITHIN_S: Final = 300.0
"""It may have to be compiled."""
_AGAIN_S: Final = 60.0
_LONGEST_WORDS: Final = 1000
_log: Final = structlog.get_logger()


def installer(settings: BrokerSettings) -> tuple[str, ...]:
    """The command that installs the library for the present driver."""
    where = (
        "--root",
        settings.root,
        "--driver-root",
        settings.driver_root,
        "--library-folder",
        settings.library_folder,
    )
    return (sys.executable, "-P", "-m", "partage_isolation", "--install-library", *map(str, where))


class Renewal:
    def __init__(
        self, command: Sequence[str], driver: str, *, start: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        """`driver` is the version that the library was installed for; `start` runs a background task."""
        self._command, self._driver, self._start = tuple(command), driver, start
        self._is_at_work = False
        self._not_before_s = 0.0

    def look(self, driver: str) -> None:
        """`driver` is the node's current version; empty where it has none, which changes nothing."""
        if driver in ("", self._driver) or self._is_at_work or time.monotonic() < self._not_before_s:
            return
        self._is_at_work = True
        self._start(self._renew(driver))

    async def _renew(self, driver: str) -> None:
        try:
            why = await self._failure()
        finally:
            self._is_at_work = False
        if why is None:
            _log.info("installed the library for the new driver", driver=driver, before=self._driver)
            self._driver = driver
        else:
            self._not_before_s = time.monotonic() + _AGAIN_S
            _log.error(
                "the library can't be installed for the new driver; containers get the one before, and functions that "
                "only the new driver has are missing in it",
                driver=driver,
                why=why,
            )

    async def _failure(self) -> str | None:
        try:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        except OSError as error:
            return f"no process can be made: {error.strerror}"
        goes_as_others(process.pid)
        try:
            async with asyncio.timeout(_WITHIN_S):
                _, said = await process.communicate()
        except TimeoutError:
            return f"it took longer than {_WITHIN_S:g} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == 0:
            return None
        return said.decode(errors="replace").strip()[-_LONGEST_WORDS:] or f"it ended with {process.returncode}"
