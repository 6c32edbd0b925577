"""The crishim daemon: serves first, then loads plugins; at the end it drains calls before it exits.

The socket is served before plugins are loaded, so that calls that do not concern us never wait for them. No fault ends
crishim. If its settings are invalid, it uses the last valid ones and honours no allocation; it exits only once the
settings are valid again, so that its supervisor restarts it with them. A crishim whose socket was replaced by a newer
one drains and exits, as if it had been stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import structlog

from partage_base.cri import PodResources, RuntimeClient, UnaryClient
from partage_base.daemon.errors import BadConfiguration, CannotListen
from partage_base.daemon.life import Daemon
from partage_base.daemon.plugin_host import WatchedHost, host_settings
from partage_base.event_wait import set_within
from partage_base.files import clear_unfinished
from partage_base.keyring import Keyring
from partage_crishim.audit_log import AuditLog
from partage_crishim.condition import CLOSED, LOOK_EVERY_S, ConditionFile, RuntimeProbe, faults
from partage_crishim.kubelet import KubeletSign
from partage_crishim.ledger import CardLedger
from partage_crishim.listener import Listener, listen
from partage_crishim.parts import OWN_FOLDER, Parts, Policy
from partage_crishim.proxy import Counters, ProxyServer
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.settings import CrishimSettings
from partage_plugins.api import NodeName
from partage_plugins.api.places import CRISHIM_CONDITION, KUBELET_SPOKE, RESIZES_FOLDER

_AGAIN_S: Final = 5.0
"""Delay before a retry of something that failed as a whole."""
_SETTLE_WITHIN_S: Final = 2.0
_COLLECT_AFTER: Final = 10_000
"""New objects; at Python's default of 700, every second container would wait for a garbage collection."""
_log = structlog.get_logger()


async def start(settings: CrishimSettings, daemon: Daemon) -> Crishim:
    """Serve kubelet, and load plugins meanwhile.

    Shutdown runs in reverse: stop accepting, drain open calls, release ended reservations, stop plugins.
    """
    stack, runtime_path = daemon.stack, settings.below_root(settings.runtime)
    mistakes = daemon.reading.mistakes if daemon.reading else ()
    counters = Counters()
    audit_log = AuditLog(counters, daemon.metrics)
    runtime = stack.enter_context(contextlib.closing(UnaryClient(runtime_path)))
    resources = stack.enter_context(contextlib.closing(UnaryClient(settings.below_root(settings.pod_resources))))
    host = WatchedHost(host_settings(settings, "crishim"))
    stack.push_async_callback(host.stop)
    parts = Parts(
        settings.root,
        NodeName(settings.node_name),
        Policy.of(settings, closed=CLOSED if mistakes else ""),
        keys=settings.below_root(settings.keys),
        runtime=RuntimeClient(runtime),
        resources=PodResources(resources),
        host=host,
        tell=audit_log.event,
        took=audit_log.plugins.observe,
        trouble=audit_log.trouble,
    )
    stack.push_async_callback(_settle, parts.ledger)
    sign = KubeletSign(settings.root / KUBELET_SPOKE, failed=audit_log.trouble)
    proxy = ProxyServer(runtime_path, parts.admission, on_call=sign.note, counters=counters)
    stack.push_async_callback(proxy.drain, settings.drain_s)
    listener = await _listening(settings, audit_log)
    stack.callback(listener.close)
    proxy.serve(listener.socket)
    own = settings.root / OWN_FOLDER
    clear_unfinished(
        own, own / "records/containers", own / "records/pods", own / "records/regrants", settings.root / RESIZES_FOLDER
    )
    _keep_settings(settings, daemon)
    _log_keys(parts.keyring)
    condition = ConditionFile(
        settings.root / CRISHIM_CONDITION,
        daemon.health,
        RuntimeProbe(runtime_path, counters, parts.containerd.config),
        partial(faults, mistakes, parts, host, daemon.health),
        keys=lambda: parts.keyring.current().keys,
        guarded=audit_log.guarded,
    )
    await host.try_start()
    await condition.look()
    return Crishim(daemon=daemon, parts=parts, host=host, listener=listener, condition=condition, mistakes=mistakes)


@dataclass(frozen=True, kw_only=True)
class Crishim:
    daemon: Daemon
    parts: Parts
    host: WatchedHost
    listener: Listener
    condition: ConditionFile
    mistakes: tuple[str, ...]
    """Mistakes in the settings."""
    reloads: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a restart of the plugins was requested."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Run the background loops: cleanup, condition file and check for a newer crishim, plugins, resizes."""
        for name, work in (
            ("collector", self.parts.collector.run),
            ("condition", self._keep_condition),
            ("plugins", self._keep_plugins),
            ("resizes", self.parts.resizes.run),
        ):
            self.daemon.tasks.start(_for_ever(name, work), name=name)
        gc.collect()
        gc.freeze()  # objects that exist after the start live until the end
        gc.set_threshold(_COLLECT_AFTER)
        await stopping.wait()

    def reload(self) -> None:
        """Restart plugins, and reread invalid settings. Keys are reread for every container."""
        _log_keys(self.parts.keyring)
        self._end_if_mended()
        self.reloads.set()

    async def _keep_condition(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self.listener.is_replaced:  # and so is the condition file
                self.daemon.end("another crishim has taken over the socket")
                await asyncio.Event().wait()  # cancelled at the end
            await self.condition.look()
            self._end_if_mended()

    def _end_if_mended(self) -> None:
        if self.mistakes and self.daemon.reading is not None:
            with contextlib.suppress(BadConfiguration):
                self.daemon.reading.sources.read()
                self.daemon.end("the settings can be read again; crishim starts again with them")

    async def _keep_plugins(self) -> None:
        while True:
            if await set_within(self.reloads, _AGAIN_S):
                self.reloads.clear()
                await self.host.restart()
            elif not self.host.is_up:
                await self.host.try_start()


async def _for_ever(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a loop; if it raises, log the error and restart it, since it must not end the proxy."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001  see above
            _log.exception("internal error in crishim, please report it; it keeps serving", task=name)
        await asyncio.sleep(_AGAIN_S)


async def _listening(settings: CrishimSettings, audit_log: AuditLog) -> Listener:
    """Listen as soon as possible; exiting instead would only be a slower retry."""
    while True:
        try:
            return listen(settings.below_root(settings.listen), os.environ)
        except CannotListen as error:
            audit_log.trouble(error)
            await asyncio.sleep(LOOK_EVERY_S)


async def _settle(ledger: CardLedger) -> None:
    """Remove the reservations of creates that have ended, so that the next crishim has fewer to read."""
    with contextlib.suppress(NodeNotReady, OSError, TimeoutError):
        async with asyncio.timeout(_SETTLE_WITHIN_S):
            await ledger.held(fresh=True)


def _keep_settings(settings: CrishimSettings, daemon: Daemon) -> None:
    if daemon.reading is None or daemon.reading.mistakes:
        return
    try:
        daemon.reading.sources.keep(settings)
    except OSError as error:
        _log.warning("cannot save the settings for use by a start with invalid ones", why=str(error))


def _log_keys(keyring: Keyring) -> None:
    loaded = keyring.current()
    _log.info("verification keys loaded", keys=sorted(map(str, loaded.keys)))
    for each in loaded.faults:
        _log.warning("key rejected", why=str(each))
