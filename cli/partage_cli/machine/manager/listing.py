"""What the runtime has, sorted by pods. One listing at a time, for all who want one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from partage_cli.machine.manager.engine import Engine
from partage_cli.machine.pods.record import ANNOTATION, Record
from partage_cli.machine.runtime.messages import ListedContainer, Sandbox


class FoundPod(Struct, frozen=True, kw_only=True):
    """A pod as the runtime has it."""

    record: Record
    sandbox: Sandbox
    """The newest."""
    older: tuple[str, ...]
    """Sandboxes that it replaced."""
    containers: Mapping[str, ListedContainer]
    """The last attempt of each, in the newest sandbox."""
    replaced: tuple[str, ...]
    """Containers of earlier attempts."""


class Listed(Struct, frozen=True):
    pods: Mapping[str, FoundPod]
    """By uid."""
    faults: tuple[str, ...] = ()
    """Sandboxes that say they are ours, and whose record can't be read."""


def sorted_by_pods(sandboxes: Iterable[Sandbox], containers: Iterable[ListedContainer]) -> Listed:
    """Pure. Sandboxes without a record are none of ours."""
    by_uid: dict[str, list[Sandbox]] = {}
    by_sandbox: dict[str, list[ListedContainer]] = {}
    for sandbox in sandboxes:
        if ANNOTATION in sandbox.annotations:
            by_uid.setdefault(sandbox.uid, []).append(sandbox)
    for container in containers:
        by_sandbox.setdefault(container.sandbox_id, []).append(container)
    pods: dict[str, FoundPod] = {}
    faults: list[str] = []
    for uid, found in by_uid.items():
        found.sort(key=lambda each: (each.attempt, each.created_ns), reverse=True)
        newest, *older = found
        try:
            record = msgspec.json.decode(newest.annotations[ANNOTATION], type=Record)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            faults.append(f"sandbox {newest.id}: annotation {ANNOTATION}: {error}")
            continue
        last, replaced = _attempts(by_sandbox.get(newest.id, ()))
        ids = tuple(each.id for each in older)
        pods[uid] = FoundPod(record=record, sandbox=newest, older=ids, containers=last, replaced=replaced)
    return Listed(pods, tuple(faults))


def _attempts(containers: Iterable[ListedContainer]) -> tuple[dict[str, ListedContainer], tuple[str, ...]]:
    last: dict[str, ListedContainer] = {}
    replaced: list[str] = []
    for each in sorted(containers, key=lambda container: container.attempt):
        if each.name in last:
            replaced.append(last[each.name].id)
        last[each.name] = each
    return last, tuple(replaced)


class Listing:
    """Asks the runtime; those who ask while a listing is under way share the next one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._next: asyncio.Task[Listed] | None = None
        self._turn = asyncio.Lock()

    async def now(self) -> Listed:
        """As it is after this was asked."""
        if self._next is None:
            self._next = asyncio.create_task(self._list(), name="listing")
        return await asyncio.shield(self._next)

    async def _list(self) -> Listed:
        async with self._turn:
            self._next = None  # who asks from now on must not get what was asked before
            sandboxes: Sequence[Sandbox] = await self._engine.sandboxes()
            return sorted_by_pods(sandboxes, await self._engine.containers())
