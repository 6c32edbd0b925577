"""Containers whose memory does not move by itself are suspended by the driver: all their processes leave their cards.

First the gate is closed and work is done; then the driver locks all processes and takes them to the host, one after the
other; then others may have the room. Back it goes the other way round: first there is room again. What is to be is in
the container's file before anything is done for it, and each step begins with a look at how processes stand, so that it
is the same whether a step is done, half done by a broker that is no more, or not begun. Where the driver refuses one
process all go on as before.
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
from partage_isolation.checkpoint.messages import Called, ProcessStand, Step
from partage_isolation.errors import BrokerError, SpecRefused
from partage_isolation.ledger.budget import Process, State
from partage_isolation.names import BudgetKey
from partage_isolation.store.specs import Spec
from partage_isolation.wire.connection import Served
from partage_isolation.wire.messages import Suspended
from partage_isolation.wire.moving import Moving
from partage_isolation.wire.served import Registry
from partage_isolation.wire.watch import Chores
from partage_plugins.vocabulary.names import ContainerKey

_PATIENCE_MS: Final = 10_000
"""For work that was launched before the gate was closed."""
_LOOK_S: Final = 0.010
_AGAIN_S: Final = (0.2, 1.0, 5.0, 30.0)
_SURE_AFTER: Final = 5
_HEARD_S: Final = 30.0
"""Who asked hears within that why it could not be; a later question is a new one."""
_OWN: Final = 64 << 20
"""Bytes of the host that each process needs beside what it has on cards."""
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
    """The container runs on, and why."""


class _Refusal(NamedTuple):
    why: str
    at_s: float


class Suspension:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        *,
        registry: Registry,
        moving: Moving,
        checkpoints: Checkpoints,
        chores: Chores,
        note: Callable[[Served, Spec], None],
        room_of: Callable[[int], HostRoom] = host_room,
    ) -> None:
        """`note` writes down what is to be of a container; it raises a `BrokerError`."""
        self._registry, self._moving, self._checkpoints = registry, moving, checkpoints
        self._chores, self._note, self._room_of = chores, note, room_of
        self._under_way: set[BudgetKey] = set()
        self._refused: dict[BudgetKey, _Refusal] = {}

    def ask(self, served: Served, *, is_on: bool) -> Suspended:
        """Begins it, or says how far it is; raises a `BrokerError`."""
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
        """Where a broker before this one was, or a question asks for more."""
        key = served.budget.key
        served.budget.is_away = served.spec.checkpoint != "none"
        if served.budget.is_away and key not in self._under_way:
            self._under_way.add(key)
            self._chores.start(self._drive(key))

    # ---- On its way --------------------------------------------------------------------------------------------------

    async def _drive(self, key: BudgetKey) -> None:
        """Until it is where it is to be, or the container is gone."""
        tries = 0
        try:
            while (spec := self._spec(key)) is not None and not await self._tried(key, spec, tries):
                tries += 1
        finally:
            self._under_way.discard(key)

    async def _tried(self, key: BudgetKey, spec: Spec, tries: int) -> bool:
        """One try; whether all is as it should be."""
        try:
            await (self._suspend(key) if spec.is_suspended else self._resume(key, is_sure=tries >= _SURE_AFTER))
        except BrokerError as error:
            _log.warning("a container is not suspended or resumed", pod=spec.pod.name, key=spec.key, why=str(error))
            if spec.is_suspended and spec.checkpoint == "on-card" and self._goes_on(key, str(error)):
                return False
            await asyncio.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
        now = self._spec(key)
        return now is None or now.checkpoint == ("on-host" if now.is_suspended else "none")

    def _goes_on(self, key: BudgetKey, why: str) -> bool:
        """It is not suspended after all; False where that can't be written down: then it is tried again."""
        self._refused[key] = _Refusal(why, time.monotonic())
        try:
            self._put(key, is_suspended=False)
        except BrokerError as error:
            _log.warning("that a container goes on can't be written down", why=str(error))
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
        """False: something else is to be meanwhile."""
        while (spec := self._spec(key)) is not None and spec.is_suspended is is_suspended:
            if is_so(key):
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    # ---- Processes ---------------------------------------------------------------------------------------------------

    async def _take_out(self, driver: DriverCalls, key: BudgetKey) -> None:
        """All are locked before the first one leaves: they may wait for each other."""
        for step, before, after in (
            (Step.LOCK, ProcessStand.RUNS, ProcessStand.LOCKED),
            (Step.GO, ProcessStand.LOCKED, ProcessStand.AWAY),
        ):
            for process in self._processes(key):
                now = await driver.call(Step.LOOK, process.id)
                if now.stand is before:
                    now = await driver.call(step, process.id, patience_ms=_PATIENCE_MS, amount=_held(process))
                if now.stand not in (after, ProcessStand.AWAY, ProcessStand.ENDED):
                    raise NotSuspended(_sentence(process, step, now))

    async def _bring_back(self, driver: DriverCalls, key: BudgetKey, *, is_sure: bool) -> None:
        """All that can come back do, before it is said that one can't.

        `is_sure`: one of which the driver says nothing again and again does not use it.
        """
        wrong, unclear = list[str](), () if is_sure else (ProcessStand.UNKNOWN,)
        for process in self._processes(key):
            now = await driver.call(Step.LOOK, process.id)
            if now.stand is ProcessStand.AWAY:
                now = await driver.call(Step.COME, process.id, amount=_held(process))
            if now.stand is ProcessStand.LOCKED:
                now = await driver.call(Step.UNLOCK, process.id)
            if now.stand in (ProcessStand.LOCKED, ProcessStand.AWAY, *unclear):
                wrong.append(_sentence(process, Step.COME, now))
        if wrong:
            raise NotSuspended("; ".join(wrong))

    def _processes(self, key: BudgetKey) -> Sequence[Process]:
        """Those that have anything on a card; others can get nothing meanwhile."""
        served = next(iter(self._registry.of(key)), None)
        found = served.budget.processes.values() if served else ()
        return [each for each in found if each.state not in _OVER and each.has_something]

    def _require_host_room(self, key: BudgetKey) -> None:
        """Before anything is locked. What is on the host already is in its groups' sums."""
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

    # ---- What is to be -----------------------------------------------------------------------------------------------

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
