"""The life cycle of a daemon: start, run, stop.

Start initializes the daemon and enters its resources into an exit stack. Only when start has returned is the daemon
ready and systemd told READY=1. Run lasts until a signal requests a stop or until something ends it: an error, a task
that died, a run that returned by itself. Stop closes the stack; it always follows a start, even one that failed half
way.

From the moment a stop begins, everything has one deadline. A step that misses it ends the process with an error that
names the step. If the loop itself is blocked, a watchdog beneath the interpreter (faulthandler) ends the process and
prints the stack of every thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import msgspec
import structlog

from partage_base.daemon import logs, signals
from partage_base.daemon.errors import EndedUnasked, Report, StopHung
from partage_base.daemon.health import Health, Systemd
from partage_base.daemon.metrics import Metrics
from partage_base.daemon.settings import CommonSettings
from partage_base.daemon.sources import Sources
from partage_base.daemon.web import Page, Web

S = TypeVar("S", bound=CommonSettings)
T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]

_GRACE_S: Final = 1.0  # between our own end of a hanging step and the watchdog's, which can't name the step
_log = structlog.get_logger()


class Running(Protocol):
    """A daemon that has started and that others can rely on."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Works until `stopping` is set, then returns soon; never returns before."""


@runtime_checkable
class Reloads(Protocol):
    """A daemon that can reload at run time what is not a setting, such as keys and plugins."""

    def reload(self) -> None:
        """Called on SIGHUP; returns at once."""


@dataclass(frozen=True)
class SettingsOutcome:
    """The settings' sources, and the mistakes in them, of a daemon that runs with any settings."""

    sources: Sources[Any]
    mistakes: tuple[str, ...] = ()
    """Why the daemon runs with other settings than it was given; normally empty."""


class Daemon(msgspec.Struct, frozen=True):
    """What the process provides to the daemon in it."""

    name: str
    metrics: Metrics
    health: Health
    tasks: Tasks
    systemd: Systemd
    stack: AsyncExitStack
    """Holds the daemon's resources. The stop closes it, also after a start that failed or was cancelled."""
    end: Callable[[str], None]
    """Requests a stop, with the reason. A signal that comes later still counts as the first."""
    reading: SettingsOutcome | None = None
    """Set only for a daemon with `lives_always`."""
    pages: dict[str, Page] = msgspec.field(default_factory=dict[str, Page])
    """The daemon's own pages on the metrics port."""


Start = Callable[[S, Daemon], Coroutine[Any, Any, Running]]
"""Starts a daemon. Cancelled if a stop is requested meanwhile."""


def live(  # noqa: PLR0913  said once, by each daemon's command
    name: str,
    settings: S,
    *,
    start: Start[S],
    loop_factory: LoopFactory | None = None,
    takes_over: bool = False,
    reading: SettingsOutcome | None = None,
) -> int:
    """Runs the daemon `name` and returns its exit code; the process must end after it.

    With `takes_over` it may start while its predecessor still runs, and waits for the predecessor's metrics port.
    """
    logs.configure(name, level=settings.log_level, log_format=settings.log_format)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(_lead(name, settings, start, takes_over=takes_over, reading=reading))


async def _lead(name: str, settings: S, start: Start[S], *, takes_over: bool, reading: SettingsOutcome | None) -> int:
    life = _Life(name, settings, takes_over=takes_over, reading=reading)
    signals.install(on_stop=life.on_signal, on_hangup=life.on_hangup)
    with signals.waking(asyncio.get_running_loop()):
        return await life.lead(lambda daemon: start(settings, daemon))


class _Life:
    """One run of a daemon; its steps are in `lead`."""

    def __init__(
        self, name: str, settings: CommonSettings, *, takes_over: bool, reading: SettingsOutcome | None
    ) -> None:
        self._report = Report()
        self._takes_over = takes_over
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._ends_at: float | None = None
        self._running: Running | None = None
        self._reload_waits = False
        tasks, systemd = Tasks(self._on_task_end), Systemd(os.environ)
        self._daemon = Daemon(name, Metrics(name), Health(), tasks, systemd, AsyncExitStack(), self._end, reading)

    async def lead(self, start: Callable[[Daemon], Coroutine[Any, Any, Running]]) -> int:
        """Runs start, run and stop; returns the exit code."""
        self._daemon.health.unready("start", "still starting")
        with self._report.noting():
            async with self._web():
                with self._report.noting():
                    if (running := await self._started(start)) is not None:
                        await self._run(running)
                self._begin_stop()
                with self._report.noting():
                    await self._finish("stop", asyncio.create_task(self._daemon.stack.aclose()))
                await self._end_tasks()
        _log.info("stopped", exit_code=self._report.exit_code)
        return self._report.exit_code

    def _web(self) -> Web:
        daemon = self._daemon
        address = self._settings.metrics_address
        return Web(address, metrics=daemon.metrics, health=daemon.health, waits=self._takes_over, pages=daemon.pages)

    def on_signal(self, name: str) -> None:
        """Requests a stop. It may interrupt any code, so it only sets the watchdog and leaves the rest to the loop."""
        self._set_watchdog()
        self._soon(lambda: self._ask(name))

    def on_hangup(self) -> None:
        """Reloads a service that implements `Reloads`; others log what to do instead."""
        self._soon(self._reload)

    def _reload(self) -> None:
        running: object = self._running
        if running is None:
            self._reload_waits = True
        elif isinstance(running, Reloads):
            _log.info("reload requested")
            running.reload()
        else:
            _log.warning("SIGHUP is ignored: settings are read once; restart the daemon")

    def _soon(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed: the process ends soon anyway
            self._loop.call_soon_threadsafe(work)

    async def _started(self, start: Callable[[Daemon], Coroutine[Any, Any, Running]]) -> Running | None:
        """Returns None if a stop was requested before the start was complete."""
        _log.info("starting", pid=os.getpid(), node=self._settings.node_name)
        step = asyncio.create_task(start(self._daemon))
        await self._until_stopping_or(step)
        if not step.done():
            step.cancel()
        running = await self._finish("start", step)
        return None if self._stopping.is_set() else running

    async def _run(self, running: Running) -> None:
        self._running = running
        self._tell_ready()
        if self._reload_waits:
            self._reload()
        step = asyncio.create_task(running.run(self._stopping))
        await self._until_stopping_or(step)
        asked = self._stopping.is_set()
        await self._finish("run", step)
        if not asked:
            raise EndedUnasked(
                "the run ended by itself before a stop was asked for; this is a defect, please report it"
            )

    async def _until_stopping_or(self, step: asyncio.Task[Any]) -> None:
        asked = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({step, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()

    async def _finish(self, name: str, step: asyncio.Task[T]) -> T | None:
        """The result of `step`, or its exception; None if the stop cancelled it. Waits until the deadline."""
        await self._wait(name, {step})
        if not step.cancelled():
            return step.result()
        if not self._stopping.is_set():
            raise EndedUnasked(f"step {name} was cancelled from within; this is a defect, please report it")
        return None

    async def _end_tasks(self) -> None:
        with self._report.noting():  # `_on_task_end` reports what a task raises
            await self._wait("tasks", self._daemon.tasks.cancel())

    async def _wait(self, name: str, tasks: set[asyncio.Task[Any]]) -> None:
        left_s = None if self._ends_at is None else max(0.0, self._ends_at - self._loop.time())
        if tasks and (await asyncio.wait(tasks, timeout=left_s))[1]:
            raise StopHung(
                f"step {name} was not done {self._settings.stop_deadline_s:g} s after the stop began; the process ends "
                "without it; if it only needs longer, raise stop_deadline_s"
            )

    def _tell_ready(self) -> None:
        systemd = self._daemon.systemd
        self._daemon.health.ready("start")
        systemd.notify("READY=1", f"MAINPID={os.getpid()}", "STATUS=running")
        if systemd.watchdog_s:
            self._daemon.tasks.start(self._feed_watchdog(systemd.watchdog_s), name="watchdog")
        _log.info("ready")

    async def _feed_watchdog(self, every_s: float) -> None:
        while True:
            if not self._daemon.health.against_alive:
                self._daemon.systemd.notify("WATCHDOG=1")
            await asyncio.sleep(every_s)

    def _end(self, why: str) -> None:
        _log.info("stopping by itself", why=why)
        self._begin_stop()

    def _ask(self, signal_name: str) -> None:
        _log.info("stop requested", signal=signal_name)
        self._begin_stop()

    def _begin_stop(self) -> None:
        if self._ends_at is not None:
            return
        self._ends_at = self._loop.time() + self._settings.stop_deadline_s
        self._set_watchdog()
        self._daemon.health.unready("stop", "stopping")
        self._daemon.systemd.notify("STOPPING=1", "STATUS=stopping")
        self._stopping.set()

    def _set_watchdog(self) -> None:
        faulthandler.dump_traceback_later(self._settings.stop_deadline_s + _GRACE_S, exit=True, file=2)

    def _on_task_end(self, error: Exception) -> None:
        if not (self._stopping.is_set() and isinstance(error, EndedUnasked)):
            self._report.tell(error)
            self._begin_stop()


class Tasks:
    """Starts tasks, reports one that ends by itself, and cancels them together."""

    def __init__(self, on_end: Callable[[Exception], None]) -> None:
        self._on_end = on_end
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Runs `work` until the daemon stops."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def cancel(self) -> set[asyncio.Task[None]]:
        """Cancels all tasks and returns those that are not done yet."""
        for task in self._running:
            task.cancel()
        return set(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            error.add_note(f"It was raised in task {task.get_name()!r}.")
            self._on_end(error)
        elif not task.cancelling():
            self._on_end(EndedUnasked(f"task {task.get_name()!r} ended by itself; this is a defect, please report it"))
