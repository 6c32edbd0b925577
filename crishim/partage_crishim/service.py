"""crishim as a daemon: serves first, then gets ready to judge; at the end it lets calls end before it goes.

The socket is served before plugins are loaded: what is not ours must not wait for what is. A crishim that finds its
socket replaced by a newer one drains and ends, as if it had been told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from typing import Final

import structlog

from partage_base.daemon.life import Daemon
from partage_base.daemon.repeats import Repeats
from partage_crishim.assembling import assemble
from partage_crishim.deciding.errors import NodeNotReady
from partage_crishim.judge import Changed, Told
from partage_crishim.listening import Listener, listen
from partage_crishim.metering import Figures
from partage_crishim.noting import KubeletNote
from partage_crishim.settings import CrishimSettings
from partage_crishim.splice import Splicer
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.places import KUBELET_SPOKE

_LOOK_EVERY_S: Final = 1.0
_SETTLE_WITHIN_S: Final = 2.0
_COLLECT_AFTER: Final = 10_000
"""New objects; after as few as Python's own 700 a container in two would wait for the garbage to be collected."""
_log = structlog.get_logger()


def _leave_alone_what_stays() -> None:
    """What there is after the start is there until the end, and need not be looked through for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


class CrishimService:
    """A `partage_base.daemon.life.Service`."""

    def __init__(self, settings: CrishimSettings, daemon: Daemon) -> None:
        self._settings = settings
        self._daemon = daemon
        self._repeats = Repeats(every_s=10)
        self._listener: Listener | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._parts = assemble(settings, tell=self._tell, changed=self._changed, took=self._took, trouble=self._trouble)
        self._note = KubeletNote(settings.root / KUBELET_SPOKE, failed=self._trouble)
        self._splicer = Splicer(settings.below_root(settings.runtime), self._parts.judge, on_call=self._noted)
        self._figures = Figures(self._splicer.counters, daemon.metrics.registry)

    async def start(self) -> None:
        """Serves kubelet, and loads plugins meanwhile."""
        self._listener = listen(self._settings.below_root(self._settings.listen), os.environ)
        self._splicer.serve(self._listener.socket)
        self._tell_of_keys()
        try:
            await self._parts.host.start()
        except PartageError as error:
            _log.error("plugins do not start; containers with grants are refused until they do", why=str(error))

    async def run(self, stopping: asyncio.Event) -> None:
        """Cleans up after containers, and looks whether a newer crishim has taken over."""
        self._daemon.tasks.start(self._parts.collector.run(), name="collector")
        self._daemon.tasks.start(self._watch_socket(), name="socket")
        _leave_alone_what_stays()
        await stopping.wait()

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
                await self._parts.booking.held(fresh=True)

    def reload(self) -> None:
        """Keys are looked at for every container; plugins are made anew for the next one."""
        self._tell_of_keys()
        self._reloading = asyncio.ensure_future(self._parts.host.stop())

    def _noted(self, method: str) -> None:
        self._note.note(method)
        self._parts.foresight.note(method)

    async def _watch_socket(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self._listener is not None and self._listener.is_replaced:
                self._daemon.end("another crishim has taken over the socket")
                await asyncio.Event().wait()  # for the end, which cancels this

    def _tell_of_keys(self) -> None:
        loaded = self._parts.keyring.current()
        _log.info("keys that verify", keys=sorted(map(str, loaded.keys)))
        for fault in loaded.faults:
            _log.warning("a key is not believed", why=str(fault))

    def _tell(self, told: Told) -> None:
        reason = type(told.error).__name__
        self._figures.refused[reason] += 1
        who = {"namespace": told.namespace, "pod": told.pod, "container": told.container}
        if (silent := self._repeats.due((*who.values(), reason))) is None:
            return
        if told.is_defect:
            _log.error("a defect of crishim", **who, exc_info=told.error)
        else:
            _log.warning("refused", **who, reason=reason, why=str(told.error), repeats=silent)

    def _changed(self, changed: Changed) -> None:
        """Says so once the verdict is out, for which a container waits: a turn of the loop later than the next."""
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._say_changed, changed)

    def _say_changed(self, changed: Changed) -> None:
        self._figures.changed[changed.why] += 1
        who = {"namespace": changed.namespace, "pod": changed.pod, "container": changed.container}
        if changed.why == "granted":
            _log.info("granted", **who, gen=changed.gen, kinds=list(changed.kinds))
        else:
            _log.info("guarded", **who)

    def _took(self, seconds: float) -> None:
        self._figures.plugins.add(seconds)

    def _trouble(self, error: PartageError | OSError) -> None:
        if (silent := self._repeats.due(str(error))) is not None:
            _log.warning("not done yet, will be tried again", why=str(error), repeats=silent)
