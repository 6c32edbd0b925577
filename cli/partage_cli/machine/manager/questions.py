"""Each question of `wire.messages`, answered."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from partage_base.processes import process_descriptor
from partage_cli.machine.manager import life
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.grant_records import GrantRecords
from partage_cli.machine.manager.grants import Grants
from partage_cli.machine.manager.managed import ManagedPod
from partage_cli.machine.manager.news import News
from partage_cli.machine.manager.pieces import Piece
from partage_cli.machine.manager.pods import Pods
from partage_cli.machine.manager.runs import Runs
from partage_cli.machine.manager.server import Say
from partage_cli.machine.manager.store import Store
from partage_cli.machine.manager.usage import Gauge
from partage_cli.machine.manager.view import cards_of, grant_status, status_of
from partage_cli.machine.places import LOGS
from partage_cli.machine.pods.pod import Container
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.runtime.logs import followed
from partage_cli.machine.wire import messages as wire
from partage_plugins.errors import PluginBroken
from partage_plugins.vocabulary.claims import ClaimRecord
from partage_plugins.vocabulary.keys import ALLOCATION


class Questions:
    """Implements `server.Answers` for all questions."""

    def __init__(  # noqa: PLR0913  said once, and by name
        self,
        *,
        pods: Pods,
        runs: Runs,
        admission: Admission,
        store: Store,
        gauge: Gauge,
        grants: Grants,
        grant_records: GrantRecords,
        news: News,
        runtime: MachineRuntime,
        root: Path,
    ) -> None:
        self._pods, self._runs, self._admission, self._store = pods, runs, admission, store
        self._gauge, self._news, self._runtime, self._root = gauge, news, runtime, root
        self._grants, self._grant_records = grants, grant_records

    async def answer(self, question: wire.Question, say: Say) -> wire.Last:
        try:
            return await self._answer(question, say)
        except PluginBroken as error:
            self._pods.end(error)
            raise

    async def _answer(self, question: wire.Question, say: Say) -> wire.Last:  # noqa: C901, PLR0911, PLR0912  one table
        match question:
            case wire.Run():
                return wire.DoneRun(pod=(await self._statuses([await self._runs.run(question, say)]))[0])
            case wire.Start(name=name):
                managed = self._pods.named(name)
                await self._runs.start(managed, say)
                return wire.DoneRun(pod=(await self._statuses([managed]))[0])
            case wire.Ps():
                return await self._ps(question)
            case wire.Stop(name=name, grace_s=grace_s):
                managed = self._pods.named(name)
                managed.stop(grace_s)
                await managed.until(lambda: managed.is_at_rest)
                return wire.Done()
            case wire.Rm():
                return await self._rm(question)
            case wire.Wait(name=name):
                managed = self._pods.named(name)
                await managed.until(lambda: managed.is_at_rest)
                return wire.DoneWait(exit_code=managed.exit_code)
            case wire.Logs():
                return await self._logs(question, say)
            case wire.Exec():
                return await self._exec(question)
            case wire.Attach(name=name, container=container, output=output):
                spec, piece = self._running(name, container)
                url = await self._runtime.attach_url(piece.id, tty=spec.tty, stdin=spec.stdin, output=output)
                return wire.DoneStream(url=url, container=piece.id, tty=spec.tty)
            case wire.Signal(name=name, number=number):
                return await self._signal(self._pods.named(name), number)
            case wire.Inspect(name=name):
                return await self._inspect(self._pods.named(name))
            case wire.Pull(image=image):
                await self._store.pull(image, say)
                return wire.DoneImages(images=await self._store.named([image]))
            case wire.Load(path=path):
                return wire.DoneImages(images=await self._store.load(Path(path), say))
            case wire.Images():
                return wire.DoneImages(images=await self._store.all())
            case wire.Events():
                return await self._events(say)
            case wire.Info():
                return await self._info()
            case wire.Allow():
                return await self._granted([await self._grants.allow(question)])
            case wire.Revoke():
                left = await self._grants.revoke(question)
                return await self._granted([] if left is None else [left])
            case wire.ListGrants():
                return await self._granted(self._grant_records.standing())

    async def _ps(self, question: wire.Ps) -> wire.Last:
        named = [self._pods.named(name) for name in question.names]
        every = named or [each for each in self._pods.all if question.all or not _has_ended(each)]
        return wire.DonePods(pods=tuple(await self._statuses(sorted(every, key=lambda pod: pod.record.created_ns))))

    async def _statuses(self, pods: Sequence[ManagedPod]) -> list[wire.PodStatus]:
        usage = await self._gauge.read()
        indexes = {str(room.card.id): room.card.index for room in self._admission.rooms()}
        return [status_of(pod, usage, indexes) for pod in pods]

    async def _rm(self, question: wire.Rm) -> wire.Last:
        managed = self._pods.named(question.name)
        if not question.force and not managed.is_at_rest:
            raise Objection("refused", f"pod {managed.name} has not ended; stop it first, or remove it with --force")
        managed.remove(0 if question.force else None)
        await managed.until(lambda: managed.is_gone)
        return wire.Done()

    async def _logs(self, question: wire.Logs, say: Say) -> wire.Last:
        managed = self._pods.named(question.name)
        name = _container_of(managed, question.container)
        folder = self._root / LOGS / managed.uid / name
        over = asyncio.Event() if question.follow else None
        ending = asyncio.create_task(_set_at_rest(managed, over)) if over else None
        try:
            async for line in followed(folder, tail=question.tail, until=over):
                await say(line)
        except FileNotFoundError:
            pass  # it has not begun, or is removed
        finally:
            if ending is not None:
                ending.cancel()
        return wire.Done()

    async def _exec(self, question: wire.Exec) -> wire.Last:
        _, piece = self._running(question.name, question.container)
        url = await self._runtime.exec_url(piece.id, question.argv, tty=question.tty, stdin=question.stdin)
        return wire.DoneStream(url=url, container=piece.id, tty=question.tty)

    async def _signal(self, managed: ManagedPod, number: int) -> wire.Last:
        running = managed.pieces.running
        if not running:
            raise Objection("refused", f"pod {managed.name} does not run")
        for piece in running.values():
            await self._send(piece, number)
        return wire.Done()

    async def _send(self, piece: Piece, number: int) -> None:
        """By a descriptor that was open before the runtime said whose it is: numbers of processes are used again."""
        pid = (await self._runtime.container(piece.id)).pid
        if pid is None:
            return
        descriptor = process_descriptor(pid)
        if descriptor is None:
            return
        try:
            now = await self._runtime.container(piece.id)
            if (now.state, now.pid) == ("running", pid):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)

    async def _inspect(self, managed: ManagedPod) -> wire.Last:
        pieces = managed.pieces.all
        return wire.DoneInspect(
            pod=(await self._statuses([managed]))[0],
            record=managed.record.pod,
            allocation=managed.seat.annotations.get(ALLOCATION, ""),
            sandbox=managed.sandbox_id,
            containers={name: piece.id for name, piece in pieces.items()},
            logs={
                name: str(self._root / LOGS / managed.uid / name / f"{piece.attempt}.log")
                for name, piece in pieces.items()
            },
        )

    async def _events(self, say: Say) -> wire.Last:
        with self._news.listener() as listener:
            while True:
                await say(await listener.next())

    async def _info(self) -> wire.Last:
        usage, runtime = await self._gauge.read(), await self._runtime.version()
        return wire.DoneInfo(
            runtime=runtime, cards=cards_of(self._admission.rooms(), usage), waiting=self._admission.waiting
        )

    async def _granted(self, records: Sequence[ClaimRecord]) -> wire.Last:
        usage = await self._gauge.read(anew=True)
        indexes = {str(room.card.id): room.card.index for room in self._admission.rooms()}
        return wire.DoneGrants(grants=tuple(grant_status(record, usage, indexes) for record in records))

    def _running(self, pod: str, container: str) -> tuple[Container, Piece]:
        managed = self._pods.named(pod)
        name = _container_of(managed, container)
        piece = managed.pieces.running.get(name)
        if piece is None:
            raise Objection("refused", f"container {name} of pod {managed.name} does not run")
        return managed.container(name), piece


def _has_ended(managed: ManagedPod) -> bool:
    return life.phase_of(managed.facts) in {"exited", "stopped"}


def _container_of(managed: ManagedPod, name: str) -> str:
    apps = life.apps_of(managed.record)
    every = (*(each.name for each in managed.record.pod.spec.init_containers), *apps)
    if name and name not in every:
        raise Objection("unknown-name", f"pod {managed.name} has no container {name}; it has {', '.join(every)}")
    return name or apps[0]


async def _set_at_rest(managed: ManagedPod, over: asyncio.Event) -> None:
    await managed.until(lambda: managed.is_at_rest)
    over.set()
