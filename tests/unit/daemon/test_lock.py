"""Only one daemon of each kind runs on a node."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from partage_base.daemon.errors import AnotherRuns
from partage_base.daemon.lock import alone
from rig.patience import PATIENCE_S, patience_s


async def _held(lock: Path) -> None:
    async with alone(lock, "broker", within_s=0):
        pass


async def _killed_with_it(lock: Path) -> None:
    async with alone(lock, "broker", within_s=0):
        os.kill(os.getpid(), signal.SIGKILL)


def _hold_and_die(lock: Path) -> None:
    asyncio.run(_killed_with_it(lock))


async def test_a_second_daemon_is_refused_by_name_while_the_first_one_runs(tmp_path: Path) -> None:
    lock = tmp_path / "run/lock"
    async with alone(lock, "broker", within_s=0):
        with pytest.raises(AnotherRuns, match=f"another broker of this node holds {lock}; stop that one"):
            await _held(lock)
    await _held(lock)


async def test_a_successor_waits_for_its_predecessor(tmp_path: Path) -> None:
    async with alone(tmp_path / "lock", "broker", within_s=0):
        waiting = alone(tmp_path / "lock", "broker", within_s=PATIENCE_S)
        taking = asyncio.create_task(waiting.__aenter__())
        await asyncio.sleep(0)
        assert not taking.done()
    await taking
    await waiting.__aexit__(None, None, None)


def test_the_lock_ends_with_a_killed_holder(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_hold_and_die, args=(tmp_path / "lock",))
    process.start()
    process.join(patience_s())
    assert process.exitcode == -signal.SIGKILL
    process.close()
    asyncio.run(_held(tmp_path / "lock"))
