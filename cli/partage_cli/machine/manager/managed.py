"""One pod and the task that carries it through its life: looks, asks `life` for the next step, does it.

What the task knows is what it did and what the runtime told. As soon as an answer of the runtime is missing, nothing
of that counts any more (*in doubt*), and it looks before it does anything else. So a manager that was killed at any
point, and one that lost the runtime, go on in the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
import structlog

from partage_base.cri.errors import CriError, PeerRefused
from partage_base.daemon.logs import Repeats
from partage_cli.machine.manager import life
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.backoff import BackOff
from partage_cli.machine.manager.engine import Engine, SandboxSpec
from partage_cli.machine.manager.errors import Objection, objection_of
from partage_cli.machine.manager.halt import Halting
from partage_cli.machine.manager.listing import FoundPod, Listing
from partage_cli.machine.manager.news import News
from partage_cli.machine.manager.pieces import Piece, Pieces
from partage_cli.machine.manager.seat import Seat
from partage_cli.machine.pods.pod import Container
from partage_cli.machine.pods.record import ANNOTATION, Past, Record
from partage_cli.machine.wire.messages import Event
from partage_plugins.errors import DecodeError, PartageError, Refused
from partage_plugins.vocabulary import Allocation, PodUid

_AGAIN_S: Final = 1.0
_NS: Final = 1e9
_NO: Final = (PeerRefused, Objection, Refused, DecodeError)
"""Answers, in contrast to those that are missing."""
EventKind = Literal["create", "start", "die", "restart", "stop", "remove", "refuse"]
_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Means:
    """What every pod is worked on with."""

    engine: Engine
    listing: Listing
    admission: Admission
    news: News
    gone: Callable[[ManagedPod], None]
    """It is removed: its name is free."""
    clock: Callable[[], float] = time.monotonic


class ManagedPod:
    def __init__(self, means: Means, uid: PodUid, record: Record) -> None:
        self.uid, self.record = uid, record
        self.will: life.Will = "run"
        self.sandbox_id, self.attempt, self.is_ready, self.address = "", -1, False, ""
        self.pieces = Pieces(means.engine, self)
        self.seat = Seat(means.admission, uid, touched=self.touched)
        self.refusals: dict[str, str] = {}
        """Why the last try failed, by container."""
        self.is_gone = False
        self.exit_code = 0
        """Once it has ended."""
        self._means, self._back_off, self._repeats = means, BackOff(), Repeats(every_s=60)
        self._older: tuple[str, ...] = ()
        self._replaced: tuple[str, ...] = ()
        self._given_up: set[str] = set()
        self._grace_s: int | None = None
        self._halting: Halting | None = None
        self._began: asyncio.Future[None] | None = None
        self._is_new = self._is_adopted = self._in_doubt = False
        self._wake, self._changed = asyncio.Event(), asyncio.Event()

    @property
    def name(self) -> str:
        return self.record.pod.metadata.name

    @property
    def facts(self) -> life.Facts:
        return life.Facts(
            record=self.record,
            ready=self.is_ready,
            containers=self.pieces.seen,
            will=self.will,
            given_up=frozenset(self._given_up),
            due=self._back_off.due,
            now=self._means.clock(),
        )

    @property
    def is_known(self) -> bool:
        """It was looked at since it was found."""
        return not self._is_adopted

    @property
    def is_at_rest(self) -> bool:
        return self.is_gone or (self.is_known and life.is_at_rest(self.facts))

    def container(self, name: str) -> Container:
        spec = self.record.pod.spec
        return next(each for each in (*spec.init_containers, *spec.containers) if each.name == name)

    # --- what people and the manager say to it

    def begin(self, allocation: Allocation) -> asyncio.Future[None]:
        """A person starts it, with this place. Done when it has begun, or with the `Objection` that says why not."""
        self.will, self._is_new = "start", not self.sandbox_id
        self.seat.promise(allocation)
        self.refusals.clear()
        self._given_up.clear()
        self._back_off.forget()
        self._began = asyncio.get_running_loop().create_future()
        self.touched()
        return self._began

    def adopt(self, found: FoundPod) -> None:
        """A manager that starts has found it; what it is meant to do shows with the first look."""
        self._hold(found)
        self._is_adopted = self._in_doubt = True

    def stop(self, grace_s: int | None) -> None:
        """A person wants it to rest; to say so once more may shorten the grace."""
        if not self.is_at_rest and self.will != "remove":
            self.will = "stop"
        self._hurry(grace_s)

    def remove(self, grace_s: int | None = None) -> None:
        self.will = "remove"
        self._hurry(grace_s)

    def doubt(self) -> None:
        self._in_doubt = True
        self.touched()

    def touched(self) -> None:
        self._wake.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()

    # --- its life

    async def live(self) -> None:
        """Returns when the pod is removed."""
        try:
            while not self.is_gone:
                try:
                    await self._move()
                except CriError as error:
                    await self._stumbled(error)
        finally:
            self.pieces.forget()

    async def _move(self) -> None:
        if self._in_doubt:
            await self._look()
            self._in_doubt = False
            if self.is_gone:
                return
        if self.will == "stop" and not self.sandbox_id:
            self.will = "remove"  # there is nothing that could be stopped
        step = life.next_step(self.facts)
        if not isinstance(step, life.Place):
            self.seat.leave_queue()
        self._tell_change(step)
        await self._do(step)

    async def _do(self, step: life.Step) -> None:
        match step:
            case life.Rest(until):
                await self._rest(until)
            case life.Remove():
                await self._remove()
            case life.Halt():
                await self._halt()
            case life.Place(past):
                await self._place(past)
            case life.Create(name, attempt):
                await self._create(name, attempt)
            case life.Begin(name):
                await self._begin(name)

    async def _place(self, past: Past) -> None:
        attempt = self.attempt + 1
        try:
            if not self.seat.turn(self.record.pod):
                await self._rest(None)
                return
            signed = self.seat.signed(gen=attempt + 1)
            record = msgspec.structs.replace(self.record, past=past)
            sandbox_id = await self._means.engine.run_sandbox(_spec(record, self.uid, attempt, signed))
        except _NO as error:
            self._failed(life.SANDBOX, error)
            return
        if self.sandbox_id:
            self._older = (*self._older, self.sandbox_id)
        self.pieces.forget()
        self.sandbox_id, self.attempt, self.is_ready, self.record = sandbox_id, attempt, True, record
        self.seat.moved(signed)
        if self.will == "start":
            self.will = "run"
        self._tell("create", text=sandbox_id)
        await self._clear_older()
        self.address = await self._means.engine.address(sandbox_id)

    async def _create(self, name: str, attempt: int) -> None:
        engine, spec = self._means.engine, _spec(self.record, self.uid, self.attempt, self.seat.annotations)
        try:
            container_id = await engine.create(self.sandbox_id, spec, self.container(name), attempt)
        except _NO as error:
            self._failed(name, error)
            return
        self.refusals.pop(name, None)
        before = self.pieces.created(name, container_id, attempt)
        if before is not None:
            await engine.remove(before.id)

    async def _begin(self, name: str) -> None:
        piece = self.pieces.all[name]
        try:
            await self._means.engine.start(piece.id)
        except PeerRefused as error:
            await self.pieces.look(name)
            self._failed(name, error)
            return
        self.pieces.started(name, time.time_ns())
        self._tell("restart" if life.restarts_of(self.facts, name) else "start", name)

    async def _halt(self) -> None:
        """Its containers with the grace that it has, then its sandbox; the place is free once that has ended."""
        running = self.pieces.running
        if not self.is_ready and not running:
            return
        grace_s = self.record.pod.spec.termination_grace_period_seconds if self._grace_s is None else self._grace_s
        self._halting = Halting(self._means.engine, [piece.id for piece in running.values()], grace_s)
        try:
            await self._halting.ended()
        finally:
            self._halting = None
        await self._means.engine.stop_sandbox(self.sandbox_id)
        for name in running:
            await self.pieces.look(name)
        self.is_ready, self.address = False, ""
        self.seat.free()
        if self.will == "stop":
            self._tell("stop")

    async def _remove(self) -> None:
        engine = self._means.engine
        await self._halt()
        await self._clear_older()
        if self.sandbox_id:
            await engine.stop_sandbox(self.sandbox_id)  # once more: what a runtime that died left of its network
            await engine.remove_sandbox(self.sandbox_id)
        await engine.clean_up(self.uid)
        self._went()

    async def _clear_older(self) -> None:
        for each in self._older:
            await self._means.engine.stop_sandbox(each)
            await self._means.engine.remove_sandbox(each)
        self._older = ()
        for each in self._replaced:
            await self._means.engine.remove(each)
        self._replaced = ()

    async def _look(self) -> None:
        """What the runtime has of it replaces all that was known."""
        found = (await self._means.listing.now()).pods.get(self.uid)
        if found is None:
            if self.sandbox_id or self._is_adopted:  # another's hand removed it
                self._went()
            return
        sandbox = found.sandbox
        is_next = self.will == "start" and sandbox.attempt > self.attempt
        if sandbox.id != self.sandbox_id:
            self.pieces.forget()
        self._hold(found)
        self.record, self.sandbox_id, self.attempt = found.record, sandbox.id, sandbox.attempt
        self.is_ready, self._older, self._replaced = sandbox.ready, found.older, found.replaced
        await self.pieces.learn(found.containers)
        if self._is_adopted:
            self._is_adopted = False
            if self.will == "run":  # no person has said anything since
                self.will = life.will_of(self.facts)
        elif is_next and sandbox.ready:
            self.will = "run"
        await self._clear_older()
        self.address = await self._means.engine.address(sandbox.id) if sandbox.ready else ""

    # --- what goes wrong

    async def _stumbled(self, error: CriError) -> None:
        """An answer is missing, or the runtime can't do what it is told."""
        if (silent := self._repeats.due(type(error).__name__)) is not None:
            _log.warning(
                "a step of a pod failed; it looks what is there", pod=self.name, why=str(error), repeats=silent
            )
        self._in_doubt = True
        self._give_up_start(error)
        await self._rest(self._means.clock() + _AGAIN_S)

    def _failed(self, name: str, error: PartageError) -> None:
        """The runtime or crishim refused it, or it could not begin."""
        why = objection_of(error).why
        self._tell("refuse", name, text=why)
        self.refusals[name] = why
        self._back_off.ended(name, 0, self._means.clock())
        if not self._give_up_start(error) and self.record.restart == "no":
            self._given_up.add(name)

    def _give_up_start(self, error: PartageError) -> bool:
        """Whether a person's start failed by it. What was never there before goes; what was there stays stopped."""
        began, self._began = self._began, None
        if began is None:
            return False
        self.will = "remove" if self._is_new else "stop"
        self._grace_s = 0
        if not began.done():
            began.set_exception(objection_of(error))
        return True

    def ended(self, name: str, piece: Piece) -> None:
        ran_s = max(0, (piece.now.finished_ns or 0) - (piece.now.started_ns or 0)) / _NS
        self._back_off.ended(name, ran_s, self._means.clock())
        self._tell("die", name, text=piece.now.message or piece.now.reason, exit_code=piece.now.exit_code)

    # --- small things

    def _hold(self, found: FoundPod) -> None:
        sandbox = found.sandbox
        is_up = sandbox.ready or any(each.state == "running" for each in found.containers.values())
        self.seat.found(sandbox.annotations, sandbox.attempt, is_up=is_up)

    def _went(self) -> None:
        self.is_gone = True
        self.seat.free()
        self._give_up_start(Objection("runtime", f"pod {self.name} was removed while it started"))
        self._tell("remove")
        self._means.gone(self)
        self._tell_change(life.Remove())

    def _hurry(self, grace_s: int | None) -> None:
        self._grace_s = grace_s
        if self._halting is not None and grace_s is not None:
            self._halting.hurry(grace_s)
        self.touched()

    def _tell_change(self, step: life.Step) -> None:
        """Who waits looks again. A start has succeeded once nothing more is to be started."""
        is_done = isinstance(step, life.Rest | life.Halt | life.Remove) and life.phase_of(self.facts) != "starting"
        if is_done and self._began is not None:
            began, self._began = self._began, None
            if not began.done():
                began.set_result(None)
        if self.is_at_rest and self.pieces.all:
            self.exit_code = life.exit_code_of(self.facts)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _rest(self, until: float | None) -> None:
        """Until something happened, or it is so late."""
        within_s = None if until is None else max(0.0, until - self._means.clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wake.wait()
        self._wake.clear()

    def _tell(self, kind: EventKind, container: str = "", *, text: str = "", exit_code: int | None = None) -> None:
        self._means.news.tell(
            Event(
                at_ns=time.time_ns(),
                kind=kind,
                name=self.name,
                uid=self.uid,
                text=text,
                exit_code=exit_code,
                attributes={"container": container} if container else {},
            )
        )


def _spec(record: Record, uid: PodUid, attempt: int, signed: Mapping[str, str]) -> SandboxSpec:
    annotations = {**signed, ANNOTATION: msgspec.json.encode(record).decode()}
    return SandboxSpec(pod=record.pod, uid=uid, attempt=attempt, annotations=annotations)
