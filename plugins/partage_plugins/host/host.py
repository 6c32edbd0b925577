"""crishim's interface to the child: sends questions, enforces deadlines, restarts the child, retries idempotent calls.

One question at a time, so plugins need no locks. If the child dies during a call, it is restarted and the question sent
once more (a hook returns the same result for the same container key). If it hangs, it is killed and the question is not
repeated, since it would only hang longer. A child that keeps dying is restarted after an increasing pause, in which
containers with grants wait, or are refused with the last error if the pause is long; other containers are not affected.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from partage_plugins.api.containers import Container, Granted
from partage_plugins.api.names import ContainerKey, Kind, NodeName, PluginName
from partage_plugins.api.node import NodeRole
from partage_plugins.errors import (
    AdjustmentConflict,
    PluginCrashed,
    PluginError,
    PluginFailed,
    PluginHung,
    PluginNonsense,
    Refused,
)
from partage_plugins.framework.node import Adjusted
from partage_plugins.host import messages
from partage_plugins.host.channel import Channel, ChildGone
from partage_plugins.host.process import HostProcess

HostEvent = messages.Started | PluginError
"""For the daemon's log: the child has started, with the plugins that it loaded, or died."""
_ITSELF: Final = "host"  # replaces the plugin's name where no plugin was running
_GRACE_S: Final = 0.2
_REAP_S: Final = 1.0
_FAULTS: Final[Mapping[str, type[PluginError]]] = {
    "PluginFailed": PluginFailed,
    "PluginNonsense": PluginNonsense,
    "AdjustmentConflict": AdjustmentConflict,
}


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Settings of the host and its child."""

    node: NodeName
    root: str = "/"
    driver_root: str = "/"
    """Below the root."""
    host: str = "/"
    """Where the host's root is mounted, if the daemon runs in a container."""
    role: NodeRole = "crishim"
    """The daemon that uses this host."""
    paths: Mapping[str, str] | None = None
    """Plugins as `module:Class` by name; None: the installed ones."""
    blocked: frozenset[PluginName] = frozenset()
    traced: bool = False
    call_deadline_s: float = 2.0
    """A plugin that takes longer for one container is killed; kubelet's own deadline is 120 s."""
    start_deadline_s: float = 30.0
    """For imports and starts of all plugins together."""
    stop_deadline_s: float = 2.0
    memory_bytes: int = 512 * 1024 * 1024
    """Memory limit of the child, so that a plugin that leaks does not exhaust the node's memory."""
    pauses_s: tuple[float, ...] = (0, 0.1, 0.5, 1, 5)
    """Pauses before the next start, by the number of consecutive deaths without a reply in between."""


@dataclass(frozen=True)
class _Running:
    process: HostProcess
    channel: Channel
    started: messages.Started


class PluginHost:
    """The node plugins, in a process of their own."""

    def __init__(self, settings: HostSettings, *, on_event: Callable[[HostEvent], None] = lambda _event: None) -> None:
        self._settings, self._on_event = settings, on_event
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()
        self._child: _Running | None = None
        self._deaths = 0
        self._not_before_s = 0.0
        self._last_death: PluginCrashed | PluginHung | None = None

    async def start(self) -> messages.Started:
        """Starts the child and returns what it loaded; raises `PluginCrashed` or `PluginHung` if it does not start."""
        async with self._turn:
            return (await self._running()).started

    async def adjust(self, container: Container, granted: Granted) -> Adjusted:
        """The changes to this container; grants and parts may be raw JSON, as decoded without kinds."""
        question = messages.Adjust(
            id=next(self._numbers),
            container=container,
            gen=granted.gen,
            grants=_raw(granted.grants),
            parts=_raw(granted.parts),
            suspended=granted.suspended,
        )
        reply = await self._ask(question)
        if not isinstance(reply, messages.AdjustedReply):
            raise _no_answer(question, reply)
        return reply.adjusted

    async def removed(self, key: ContainerKey) -> None:
        """Cleans up after a container; after an error call it again later, since it must happen at least once."""
        await self._ask(messages.Removed(id=next(self._numbers), key=key))

    async def stop(self) -> None:
        """Lets the plugins stop by themselves, and kills them if they do not."""
        async with self._turn:
            child, self._child = self._child, None
            if child is not None:
                with contextlib.suppress(TimeoutError, ChildGone):
                    async with asyncio.timeout(self._settings.stop_deadline_s):
                        await child.channel.ask(messages.Stop(id=next(self._numbers)))
                await _ended(child.process, child.channel)

    async def _ask(self, question: messages.Question) -> messages.Reply:
        async with self._turn:
            try:
                reply = await self._ask_once(question)
            except PluginCrashed:  # retried once: hooks return the same for the same key
                reply = await self._ask_once(question)
        self._deaths = 0
        match reply:
            case messages.Refusal():
                raise Refused(reply.why)
            case messages.Fault():
                raise _fault(reply)
            case _:
                return reply

    async def _ask_once(self, question: messages.Question) -> messages.Reply:
        child = await self._running()
        return await self._answered(child.process, child.channel, question, self._settings.call_deadline_s)

    async def _running(self) -> _Running:
        """The child; started if there is none, refused during a long pause."""
        child = self._child
        if child is not None and child.channel.is_open:
            return child
        if child is not None:  # it died between two questions
            self._child = None
            self._on_event(PluginCrashed(_ITSELF, "idle", f"its process {await _ended(child.process, child.channel)}"))
        await self._pause()
        self._child = await self._begun()
        self._on_event(self._child.started)
        return self._child

    async def _pause(self) -> None:
        """Waits for the end of a short pause; raises the last error during a long one."""
        pause_s = self._not_before_s - asyncio.get_running_loop().time()
        if self._last_death is not None and pause_s > self._settings.call_deadline_s:
            last = self._last_death
            raise type(last)(last.plugin, last.hook, last.why)
        await asyncio.sleep(pause_s)

    async def _begun(self) -> _Running:
        settings = self._settings
        process = HostProcess(memory_bytes=settings.memory_bytes)
        channel = Channel()
        start = messages.Start(
            id=next(self._numbers),
            node=settings.node,
            root=settings.root,
            driver_root=settings.driver_root,
            host=settings.host,
            role=settings.role,
            paths=None if settings.paths is None else dict(settings.paths),
            blocked=tuple(sorted(settings.blocked)),
            traced=settings.traced,
        )
        try:
            await asyncio.get_running_loop().create_connection(lambda: channel, sock=process.socket)
            reply = await self._answered(process, channel, start, settings.start_deadline_s)
        except BaseException:
            if not channel.is_open:  # no transport owns the socket
                process.socket.close()
            channel.close()
            process.end(grace_s=0)
            raise
        if not isinstance(reply, messages.Started):
            await _ended(process, channel)
            raise _no_answer(start, reply)
        return _Running(process, channel, reply)

    async def _answered(
        self, process: HostProcess, channel: Channel, question: messages.Question, deadline_s: float
    ) -> messages.Reply:
        """The child's reply; a child that dies or exceeds the deadline is ended."""
        try:
            async with asyncio.timeout(deadline_s):
                return await channel.ask(question)
        except TimeoutError:
            plugin, hook = process.running()
            await _ended(process, channel, grace_s=0)
            death: PluginCrashed | PluginHung = PluginHung(
                plugin or _ITSELF, hook or "idle", f"took longer than {deadline_s:g} s and was killed"
            )
        except ChildGone as gone:
            plugin, hook = process.running()
            how = await _ended(process, channel)
            death = PluginCrashed(plugin or _ITSELF, hook or "idle", f"its process {how} ({gone})")
        pauses_s = self._settings.pauses_s
        self._not_before_s = asyncio.get_running_loop().time() + pauses_s[min(self._deaths, len(pauses_s) - 1)]
        self._deaths += 1
        self._child, self._last_death = None, death
        self._on_event(death)
        raise death


async def _ended(process: HostProcess, channel: Channel, *, grace_s: float = _GRACE_S) -> str:
    """Ends a child and returns how it died; a child that cannot be killed is abandoned."""
    channel.close()
    try:
        async with asyncio.timeout(_REAP_S):
            return await process.end(grace_s=grace_s)
    except TimeoutError:
        return f"{process.pid} hangs in the kernel and cannot be killed"


def _raw(by_kind: Mapping[Kind, object]) -> dict[Kind, bytes]:
    return {kind: msgspec.json.encode(value) for kind, value in by_kind.items()}


def _fault(fault: messages.Fault) -> PluginError:
    error: PluginError = _FAULTS[fault.error](fault.plugin, fault.hook, fault.why, fault.detail)
    if fault.traceback:
        error.add_note(fault.traceback)
    return error


def _no_answer(question: messages.Question, reply: messages.Reply) -> PluginNonsense:
    asked, answered = type(question).__name__.lower(), type(reply).__name__.lower()
    return PluginNonsense(_ITSELF, asked, f"the child answered with {answered}")
