"""The library follows the driver: once for each new one, again after a failure, and never because there is none."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from partage_isolation.library.renewal import Renewal, installer
from partage_isolation.settings import BrokerSettings
from support.kube import until


class Node:
    """Whose installer notes that it ran, and ends with what stands in a file."""

    def __init__(self, root: Path) -> None:
        self._notes, self.ends_with = root / "notes", root / "ends-with"
        code = (
            "import pathlib, sys; open(sys.argv[1], 'a').write('x'); print('no room', file=sys.stderr); "
            "sys.exit(int(pathlib.Path(sys.argv[2]).read_text()))"
        )
        self.ends_with.write_text("0")
        self._work: list[Coroutine[Any, Any, None]] = []
        command = (sys.executable, "-c", code, str(self._notes), str(self.ends_with))
        self._renewal = Renewal(command, "580", start=self._work.append)

    async def has(self, driver: str) -> int:
        """How often it was installed by then, looked at twice."""
        for _ in range(2):
            self._renewal.look(driver)
        for work in self._work:
            await work
        self._work.clear()
        return len(self._notes.read_text()) if self._notes.exists() else 0


async def test_once_for_each_new_driver(tmp_path: Path) -> None:
    node = Node(tmp_path)
    times = [await node.has(driver) for driver in ("580", "", "590", "590", "", "590", "580")]
    assert times == [0, 0, 1, 1, 1, 1, 2]


async def test_a_failure_is_tried_again_but_not_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, now = Node(tmp_path), 100.0
    monkeypatch.setattr("partage_isolation.library.renewal.time.monotonic", lambda: now)
    node.ends_with.write_text("1")
    assert [await node.has("590"), await node.has("590")] == [1, 1]
    now += 60
    node.ends_with.write_text("0")
    assert [await node.has("590"), await node.has("590")] == [2, 2]


async def test_an_installer_that_hangs_is_ended_with_the_broker(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    tasks: list[asyncio.Task[None]] = []
    renews = Renewal(
        (sys.executable, "-c", code, str(pid)), "", start=lambda work: tasks.append(asyncio.create_task(work))
    )
    renews.look("580")
    await until(lambda: pid.exists() and pid.read_text())
    tasks[0].cancel()
    await asyncio.wait(tasks)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_it_is_the_brokers_own_command_for_the_same_places() -> None:
    settings = BrokerSettings(root=Path("/r"), driver_root=Path("/d"), library_folder=Path("/l"))
    assert installer(settings)[1:] == (
        *("-P", "-m", "partage_isolation", "--install-library"),
        *("--root", "/r", "--driver-root", "/d", "--library-folder", "/l"),
    )
