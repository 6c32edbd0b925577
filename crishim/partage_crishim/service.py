"""crishim as a daemon: serves first, then gets ready to judge; at the end it lets calls end before it goes.

The socket is served before plugins are loaded: what is not ours must not wait for what is. Nothing that is wrong with
crishim ends it: without settings that can be read it goes by the last ones, honours no allocation, and ends only for
its supervisor to start it with those that can be read again. A crishim that finds its socket replaced by a newer one
drains and ends, as if it had been told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import structlog

from partage_base.condition import Fault
from partage_base.daemon.errors import BadConfiguration, CannotListen
from partage_base.daemon.life import Daemon
from partage_base.daemon.logs import Repeats
from partage_base.files import clear_unfinished
from partage_crishim.assembling import OWN_FOLDER, assemble
from partage_crishim.condition import LOOK_EVERY_S, ConditionFile, RuntimeProbe
from partage_crishim.faults import CLOSED, of_keys, of_metrics, of_plugins, of_settings, of_state
from partage_crishim.judge import ContainerChange, Incident
from partage_crishim.listener import Listener, listen
from partage_crishim.metrics import CrishimMetrics
from partage_crishim.noting import KubeletSign
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.settings import CrishimSettings
from partage_crishim.splice import Splicer
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.places import CRISHIM_CONDITION, KUBELET_SPOKE

_AGAIN_S: Final = 5.0
"""Until something is tried again that failed as a whole."""
_SETTLE_WITHIN_S: Final = 2.0
_COLLECT_AFTER: Final = 10_000
"""New objects; after as few as Python's own 700 a container in two would wait for the garbage to be collected."""
_log = structlog.get_logger()


def _leave_alone_what_stays() -> None:
    """What there is after the start is there until the end, and need not be looked through for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


async def _whatever_happens(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A loop that serves nobody must not end what does: a defect in it is told, and it begins again."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001  see above
            _log.exception("a defect of crishim, please report it; it serves on", task=name)
        await asyncio.sleep(_AGAIN_S)


async def start(settings: CrishimSettings, daemon: Daemon) -> CrishimService:
    """Brings it up; what a start that failed had taken is given back too."""
    service = CrishimService(settings, daemon)
    daemon.stack.push_async_callback(service.stop)
    await service.start()
    return service


class CrishimService:
    """A `partage_base.daemon.life.Running`, once it has come up."""

    def __init__(self, settings: CrishimSettings, daemon: Daemon) -> None:
        self._settings = settings
        self._daemon = daemon
        self._repeats = Repeats(every_s=10)
        self._listener: Listener | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._mistakes = daemon.reading.mistakes if daemon.reading else ()
        self._parts = assemble(
            settings,
            tell=self._tell,
            changed=self._changed,
            took=self._took,
            trouble=self._trouble,
            closed=CLOSED if self._mistakes else "",
        )
        self._note = KubeletSign(settings.root / KUBELET_SPOKE, failed=self._trouble)
        runtime = settings.below_root(settings.runtime)
        self._splicer = Splicer(runtime, self._parts.judge, on_call=self._note.note)
        sight = RuntimeProbe(runtime, self._splicer.counters)
        self._upkeep = ConditionFile(settings.root / CRISHIM_CONDITION, daemon.health, sight, self._faults)
        self._figures = CrishimMetrics(self._splicer.counters, daemon.metrics)

    async def start(self) -> None:
        """Serves kubelet, and loads plugins meanwhile."""
        self._listener = await self._listening()
        self._splicer.serve(self._listener.socket)
        own = self._settings.root / OWN_FOLDER
        clear_unfinished(own, own / "records/containers", own / "records/pods")
        self._keep_settings()
        self._tell_of_keys()
        await self._parts.host.try_start()
        await self._upkeep.look()

    async def run(self, stopping: asyncio.Event) -> None:
        """Cleans up after containers, and looks whether all is well and whether a newer crishim has taken over."""
        for name, work in (
            ("collector", self._parts.collector.run),
            ("socket", self._watch_socket),
            ("upkeep", self._keep_up),
            ("plugins", self._keep_plugins),
        ):
            self._daemon.tasks.start(_whatever_happens(name, work), name=name)
        _leave_alone_what_stays()
        await stopping.wait()

    async def _listening(self) -> Listener:
        """As soon as it can be: to end instead would only be a slower way to try again."""
        while True:
            try:
                return listen(self._settings.below_root(self._settings.listen), os.environ)
            except CannotListen as error:
                self._trouble(error)
                await asyncio.sleep(LOOK_EVERY_S)

    def _keep_settings(self) -> None:
        reading = self._daemon.reading
        if reading is None or reading.mistakes:
            return
        try:
            reading.sources.keep(self._settings)
        except OSError as error:
            _log.warning("the settings can't be kept for a start that can't read them", why=str(error))

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._listener is None or not self._listener.is_replaced:  # else the file is another's by now
                await self._upkeep.look()
            self._end_if_mended()

    def _end_if_mended(self) -> None:
        if self._mistakes and self._daemon.reading is not None:
            with contextlib.suppress(BadConfiguration):
                self._daemon.reading.sources.read()
                self._daemon.end("the settings can be read again; crishim starts anew with them")

    async def _keep_plugins(self) -> None:
        while True:
            await asyncio.sleep(_AGAIN_S)
            if not self._parts.host.is_up:
                await self._parts.host.try_start()

    def _faults(self) -> Iterator[Fault]:
        parts = self._parts
        yield from of_settings(self._mistakes)
        yield from of_keys(parts.keyring)
        yield from of_plugins(parts.host)
        yield from of_state(parts.reservations, parts.records)
        yield from of_metrics(self._daemon.health)

    async def stop(self) -> None:
        """No new clients; open calls may end; then plugins. What ended here keeps no card from the next crishim."""
        if self._listener is not None:
            self._listener.close()
        await self._splicer.drain(self._settings.drain_s)
        await self._settle()
        await self._parts.host.stop()
        await self._parts.close()

    async def _settle(self) -> None:
        """Only this process knows which of its creates have ended; for the next one their reservations stand."""
        with contextlib.suppress(NodeNotReady, OSError, TimeoutError):
            async with asyncio.timeout(_SETTLE_WITHIN_S):
                await self._parts.ledger.held(fresh=True)

    def reload(self) -> None:
        """Keys are looked at for every container; plugins are made anew, and settings that were wrong read again."""
        self._tell_of_keys()
        self._end_if_mended()
        self._reloading = asyncio.ensure_future(self._parts.host.restart())

    async def _watch_socket(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._listener is not None and self._listener.is_replaced:
                self._daemon.end("another crishim has taken over the socket")
                await asyncio.Event().wait()  # for the end, which cancels this

    def _tell_of_keys(self) -> None:
        loaded = self._parts.keyring.current()
        _log.info("keys that verify", keys=sorted(map(str, loaded.keys)))
        for fault in loaded.faults:
            _log.warning("a key is not believed", why=str(fault))

    def _tell(self, told: Incident) -> None:
        reason = type(told.error).__name__
        self._figures.refused[reason] += 1
        who = {"namespace": told.namespace, "pod": told.pod, "container": told.container}
        if (silent := self._repeats.due((*who.values(), reason))) is None:
            return
        if told.is_defect:
            _log.error("a defect of crishim", **who, exc_info=told.error)
        else:
            _log.warning("refused", **who, reason=reason, why=str(told.error), repeats=silent)

    def _changed(self, changed: ContainerChange) -> None:
        """Says so once the verdict is out, for which a container waits: a turn of the loop later than the next."""
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._say_changed, changed)

    def _say_changed(self, changed: ContainerChange) -> None:
        self._figures.changed[changed.why] += 1
        who = {"namespace": changed.namespace, "pod": changed.pod, "container": changed.container}
        if changed.why == "granted":
            _log.info("granted", **who, gen=changed.gen, kinds=list(changed.kinds))
        else:
            _log.info("guarded", **who)

    def _took(self, seconds: float) -> None:
        self._figures.plugins.observe(seconds)

    def _trouble(self, error: PartageError | OSError) -> None:
        if (silent := self._repeats.due(str(error))) is not None:
            _log.warning("not done yet, will be tried again", why=str(error), repeats=silent)
