"""The broker as a daemon: restores state, serves containers, runs audits, and leaves all state at exit.

At exit nothing is cleaned up: sockets, folders, limits and rows are for the next broker, and programs in containers
wait for it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import time
from logging import ERROR
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.life import Daemon
from partage_base.daemon.lock import alone
from partage_base.daemon.logs import Repeats
from partage_base.files import clear_unfinished, write_whole
from partage_base.findings import FINDINGS_FOLDER
from partage_base.version import VERSION
from partage_isolation.broker import Broker
from partage_isolation.settings import BrokerSettings
from partage_isolation.store.files import LOCK, LOCK_WITHIN_S, STATE, make_state_folder
from partage_isolation.store.specs import BUDGETS_FOLDER, FOLDER
from partage_isolation.urgency import go_first
from partage_isolation.wire.control import control_server
from partage_plugins.api.places import BROKER_ALIVE

_ALIVE_EVERY_S: Final = 2.0
"""Below the 5 s after which others consider it dead, with a margin for busy machines."""
_log = structlog.get_logger()


async def start(settings: BrokerSettings, daemon: Daemon) -> BrokerService:
    """Start the only broker of this node: serve all that an earlier broker served, then open the control socket."""
    make_state_folder(settings.root)
    await daemon.stack.enter_async_context(alone(settings.root / LOCK, "broker", within_s=LOCK_WITHIN_S))
    _allow_many_files()
    clear_unfinished(*(settings.root / each for each in (STATE, FOLDER, BUDGETS_FOLDER, FINDINGS_FOLDER)))
    broker = Broker(settings, daemon)
    for fault in broker.take_over():
        _log.error("failed to restore part of the previous broker's state", why=fault)
    server = await control_server(settings.root, broker.answer)
    daemon.stack.callback(server.close)
    service = BrokerService(settings, daemon, broker)
    service.give_sign_of_life()
    _leave_alone_what_stays()
    if settings.goes_first and (why := go_first(_surrendered)) is not None:
        _log.info("real-time priority unavailable; running at normal priority", why=why)
    return service


class BrokerService:
    """A `partage_base.daemon.life.Running` that runs audits and refreshes the liveness file."""

    def __init__(self, settings: BrokerSettings, daemon: Daemon, broker: Broker) -> None:
        self._settings, self._daemon, self._broker = settings, daemon, broker
        self._repeats = Repeats(every_s=60)
        self._sign = _Sign(settings.root / BROKER_ALIVE)

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until stopped; stored state remains for the next broker."""
        self._daemon.tasks.start(self._keep_alive(), name="alive")
        self._daemon.tasks.start(self._keep_looking(), name="audit")
        await stopping.wait()

    async def _keep_looking(self) -> None:
        every_s = self._settings.audit_every_s
        while True:
            began_s = time.monotonic()
            await self._look()
            await asyncio.sleep(max(every_s / 4, every_s - (time.monotonic() - began_s)))

    async def _look(self) -> None:
        """Audit once. An error in it must not end the memory service: it is logged, and readiness is withdrawn."""
        try:
            await self._broker.look()
        except Exception as error:  # noqa: BLE001  whatever it is
            self._daemon.health.unready("audit", f"{type(error).__name__}: {error}")
            what = "an audit failed; this is a defect, please report it"
            self._repeats.say(what, key=type(error).__name__, level=ERROR, exc_info=error)
        else:
            self._daemon.health.ready("audit")

    async def _keep_alive(self) -> None:
        while True:
            self.give_sign_of_life()
            await asyncio.sleep(_ALIVE_EVERY_S)

    def give_sign_of_life(self) -> None:
        """Refresh the liveness file, which shows that the broker is ready, and its version."""
        try:
            self._sign.give()
        except OSError as error:
            self._repeats.say("the sign of life can't be given", level=ERROR, why=str(error))


def _allow_many_files() -> None:
    """Raise the file limit: each process of each container needs three; the usual limit is meant for select()."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _leave_alone_what_stays() -> None:
    """Exclude imported objects from full collections, which would scan them while processes wait for a time slice."""
    gc.collect()
    gc.freeze()


def _surrendered() -> None:
    _log.error("internal error: real-time priority dropped after a second of computation without a pause")


class _Sign:
    """The liveness file: its modification time shows that the broker is alive, its content the version."""

    def __init__(self, path: Path) -> None:
        self._path, self._is_ours = path, False

    def give(self) -> None:
        try:
            if self._is_ours:
                os.utime(self._path)
                return
        except FileNotFoundError:
            pass
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(self._path, VERSION.encode(), mode=0o644)
        self._is_ours = True
