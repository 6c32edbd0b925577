"""Suspends containers whose memory does not move by itself: the driver checkpoints all their processes to the host.

First the gate is closed and work drains; then the driver locks all processes and moves them to the host one by one;
then others may use the room. Resuming reverses this: room is made first. The desired state is written to the
container's file before any step, and each step first checks the state of processes, so that a step that is done, half
done by an earlier broker, or not begun is handled the same way. If the driver refuses one process, all continue to run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import structlog
from msgspec.structs import replace

from partage_isolation.checkpoint.driver import Checkpoints, DriverCalls
from partage_isolation.checkpoint.host_room import HostRoom, host_room
from partage_isolation.checkpoint.messages import Called, CheckpointState, Step
from partage_isolation.errors import BrokerError, SpecRefused
from partage_isolation.ledger.budget import Process, State
from partage_isolation.names import BudgetKey
from partage_isolation.store.specs import Spec
from partage_isolation.wire.connection import Served
from partage_isolation.wire.messages import Suspended
from partage_isolation.wire.migration import Migration
from partage_isolation.wire.served import Registry
from partage_isolation.wire.watch import BackgroundTasks
from partage_plugins.api.names import ContainerKey

_PATIENCE_MS: Final = 10_000
"""For work that was launched before the gate was closed."""
_LOOK_S: Final = 0.010
_AGAIN_S: Final = (0.2, 1.0, 5.0, 30.0)
_SURE_AFTER: Final = 5
_HEARD_S: Final = 30.0
"""How long the reason of a failure is reported; a later request starts a new attempt."""
_OWN: Final = 64 << 20
"""Host memory in bytes that each process needs beside what it has on cards."""
_MIB: Final = 1 << 20
_WORDS: Final = {
    2: "there is no room on the card",
    600: f"its work does not end within {_PATIENCE_MS // 1000} s",
    801: "it has memory that can't leave a card: managed, or shared with another process",
}
_VERBS: Final = {Step.LOCK: "lock", Step.GO: "take away", Step.COME: "bring back"}
_OVER: Final = (State.DEAD, State.GONE)
_log: Final = structlog.get_logger()


class NotSuspended(BrokerError):
    """The container continues to run; the message says why."""


class _Refusal(NamedTuple):
    why: str
    at_s: float


class Suspension:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        *,
        registry: Registry,
        moving: Migration,
        checkpoints: Checkpoints,
        background_tasks: BackgroundTasks,
        note: Callable[[Served, Spec], None],
        room_of: Callable[[int], HostRoom] = host_room,
    ) -> None:
        """`note` records a container's desired state; it raises a `BrokerError`."""
        self._registry, self._moving, self._checkpoints = registry, moving, checkpoints
        self._background_tasks, self._note, self._room_of = background_tasks, note, room_of
        self._under_way: set[BudgetKey] = set()
        self._refused: dict[BudgetKey, _Refusal] = {}

    def ask(self, served: Served, *, is_on: bool) -> Suspended:
        """Start it, or return the progress; raises a `BrokerError`."""
        key, spec = served.budget.key, served.spec
        refusal = self._refused.pop(key, None)
        if is_on and refusal is not None and time.monotonic() - refusal.at_s < _HEARD_S:
            raise NotSuspended(f"container {spec.container} of pod {spec.pod.name} runs on: {refusal.why}")
        if is_on and not spec.is_suspended:
            self._moving.require_known(spec)
            self._require_host_room(key)
            self._put(key, is_suspended=True, checkpoint="on-card" if spec.checkpoint == "none" else spec.checkpoint)
        elif not is_on and spec.is_suspended:
            self._put(key, is_suspended=False)
        wanted = "on-host" if is_on else "none"
        if served.spec.checkpoint != wanted:
            self.go_on(served)
        held = [self._moving.facts(key, card.id) for card in served.spec.cards]
        moved = sum(each.moved for each in held if each is not None)
        resident = sum(each.resident for each in held if each is not None)
        is_done = key not in self._under_way and served.spec.checkpoint == wanted
        if not is_on and served.spec.checkpoint == "none":
            resident = sum(max(0, served.budget.charged(number)) for number in range(len(spec.cards)))
        return Suspended(is_on=is_on, resident_bytes=resident, moved_bytes=moved, is_done=is_done)

    def go_on(self, served: Served) -> None:
        """Continue where an earlier broker stopped, or start what a request asks for."""
        key = served.budget.key
        served.budget.is_away = served.spec.checkpoint != "none"
        if served.budget.is_away and key not in self._under_way:
            self._under_way.add(key)
            self._background_tasks.start(self._drive(key))

    # ---- Progress ----------------------------------------------------------------------------------------------------

    async def _drive(self, key: BudgetKey) -> None:
        """Run until the desired state is reached, or the container is gone."""
        tries = 0
        try:
            while (spec := self._spec(key)) is not None and not await self._tried(key, spec, tries):
                tries += 1
        finally:
            self._under_way.discard(key)

    async def _tried(self, key: BudgetKey, spec: Spec, tries: int) -> bool:
        """Try once; return whether the desired state is reached."""
        try:
            await (self._suspend(key) if spec.is_suspended else self._resume(key, is_sure=tries >= _SURE_AFTER))
        except BrokerError as error:
            _log.warning("failed to suspend or resume a container", pod=spec.pod.name, key=spec.key, why=str(error))
            if spec.is_suspended and spec.checkpoint == "on-card" and self._goes_on(key, str(error)):
                return False
            await asyncio.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
        now = self._spec(key)
        return now is None or now.checkpoint == ("on-host" if now.is_suspended else "none")

    def _goes_on(self, key: BudgetKey, why: str) -> bool:
        """Abandon the suspension; False if that can't be recorded: then the suspension is retried."""
        self._refused[key] = _Refusal(why, time.monotonic())
        try:
            self._put(key, is_suspended=False)
        except BrokerError as error:
            _log.warning("failed to record that a container continues", why=str(error))
            return False
        return True

    async def _suspend(self, key: BudgetKey) -> None:
        if not await self._until(key, self._moving.may_go, is_suspended=True):
            return
        async with self._checkpoints.calls() as driver:
            self._require_host_room(key)
            await self._take_out(driver, key)
        if self._spec(key) is not None:
            self._put(key, checkpoint="on-host")
            self._moving.went(key)

    async def _resume(self, key: BudgetKey, *, is_sure: bool) -> None:
        if not await self._until(key, self._moving.may_come, is_suspended=False):
            return
        async with self._checkpoints.calls() as driver:
            await self._bring_back(driver, key, is_sure=is_sure)
        self._moving.came(key)
        if await self._until(key, self._moving.is_in, is_suspended=False):
            self._put(key, checkpoint="none")
            self._moving.stays(key)
            for served in self._registry.of(key):
                served.budget.is_away = False

    async def _until(self, key: BudgetKey, is_so: Callable[[BudgetKey], bool], *, is_suspended: bool) -> bool:
        """Wait for a condition; False if the desired state changes meanwhile."""
        while (spec := self._spec(key)) is not None and spec.is_suspended is is_suspended:
            if is_so(key):
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    # ---- Processes ---------------------------------------------------------------------------------------------------

    async def _take_out(self, driver: DriverCalls, key: BudgetKey) -> None:
        """Lock all processes before the first one leaves: they may wait for each other."""
        for step, before, after in (
            (Step.LOCK, CheckpointState.RUNS, CheckpointState.LOCKED),
            (Step.GO, CheckpointState.LOCKED, CheckpointState.AWAY),
        ):
            for process in self._processes(key):
                now = await driver.call(Step.LOOK, process.id)
                if now.stand is before:
                    now = await driver.call(step, process.id, patience_ms=_PATIENCE_MS, amount=_held(process))
                if now.stand not in (after, CheckpointState.AWAY, CheckpointState.ENDED):
                    raise NotSuspended(_sentence(process, step, now))

    async def _bring_back(self, driver: DriverCalls, key: BudgetKey, *, is_sure: bool) -> None:
        """Restore all processes that can be, before an error for any other is raised.

        `is_sure`: treat a process that repeatedly stays unknown to the driver as one that does not use it.
        """
        wrong, unclear = list[str](), () if is_sure else (CheckpointState.UNKNOWN,)
        for process in self._processes(key):
            now = await driver.call(Step.LOOK, process.id)
            if now.stand is CheckpointState.AWAY:
                now = await driver.call(Step.COME, process.id, amount=_held(process))
            if now.stand is CheckpointState.LOCKED:
                now = await driver.call(Step.UNLOCK, process.id)
            if now.stand in (CheckpointState.LOCKED, CheckpointState.AWAY, *unclear):
                wrong.append(_sentence(process, Step.COME, now))
        if wrong:
            raise NotSuspended("; ".join(wrong))

    def _processes(self, key: BudgetKey) -> Sequence[Process]:
        """Processes that have anything on a card; others can get nothing meanwhile."""
        served = next(iter(self._registry.of(key)), None)
        found = served.budget.processes.values() if served else ()
        return [each for each in found if each.state not in _OVER and each.has_something]

    def _require_host_room(self, key: BudgetKey) -> None:
        """Check host memory before anything is locked. What is on the host already is part of its cgroups' usage."""
        needs, pids = dict[ContainerKey, int](), dict[ContainerKey, int]()
        for process in self._processes(key):
            needs[process.key] = needs.get(process.key, 0) + _held(process) + _OWN
            pids[process.key] = process.pid
        if next((each.spec.checkpoint for each in self._registry.of(key)), "none") == "on-host":
            return
        for container, need in needs.items():
            try:
                room = self._room_of(pids[container])
            except (OSError, ValueError, IndexError) as error:
                raise SpecRefused(f"how much memory container {container} may have can't be read: {error}") from error
            if need > room.free:
                raise SpecRefused(
                    f"what the container has on its cards needs {_shown(need)} of host memory, and {room.where} leaves "
                    f"{_shown(room.free)}; raise the container's limits.memory, or make room"
                )

    # ---- Desired state -----------------------------------------------------------------------------------------------

    def _spec(self, key: BudgetKey) -> Spec | None:
        return next((each.spec for each in self._registry.of(key)), None)

    def _put(self, key: BudgetKey, **changes: Any) -> None:  # noqa: ANN401  fields of a spec
        for served in self._registry.of(key):
            self._note(served, replace(served.spec, **changes))
            self._moving.put(served.spec)


def _held(process: Process) -> int:
    return sum(account.total for account in process.accounts.values())


def _sentence(process: Process, step: Step, said: Called) -> str:
    why = _WORDS.get(said.number, f"CUDA's error {said.number}")
    return f"the driver can't {_VERBS[step]} process {process.pid}: {why}"


def _shown(amount: int) -> str:
    return f"{-(-amount // _MIB)} MiB"
