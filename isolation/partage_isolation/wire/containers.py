"""The containers that the broker serves: creation, changes, reports and end."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Container, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.checkpoint.driver import Checkpoints
from partage_isolation.errors import BrokerError, NoFolder, SpecRefused
from partage_isolation.ledger.budget import State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.library.current import library_for_new
from partage_isolation.library.pages import line_writer
from partage_isolation.names import budget_key
from partage_isolation.store.folders import Folders
from partage_isolation.store.page import Page
from partage_isolation.store.specs import EngineContainer, Spec, Specs
from partage_isolation.wire.connection import Served
from partage_isolation.wire.deferred_requests import DeferredRequests
from partage_isolation.wire.limits import (
    Held,
    lowered,
    permitted,
    require_one_allocator,
    require_returned,
    spec_of,
)
from partage_isolation.wire.messages import LimitsSet, Prepare, Prepared, SetLimits, Suspend, Suspended
from partage_isolation.wire.migration import Migration
from partage_isolation.wire.report import picture
from partage_isolation.wire.served import Registry
from partage_isolation.wire.sessions import Sessions
from partage_isolation.wire.suspension import Suspension
from partage_isolation.wire.timeslices import TimeSlices
from partage_isolation.wire.watch import BackgroundTasks, Watch
from partage_plugins.api.names import CardId, ContainerKey

_log = structlog.get_logger()


Permit = Callable[[Collection[ContainerKey], CardId, int], Awaitable[None]]
"""Sets the driver's limit of a card for containers, in bytes."""


class Containers:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        registry: Registry,
        *,
        root: Path,
        library: Path,
        sessions: Sessions,
        parking: DeferredRequests,
        watch: Watch,
        timeslices: TimeSlices,
        moving: Migration,
        permit: Permit,
        background_tasks: BackgroundTasks,
        checkpoints: Checkpoints,
        card_bytes: Callable[[CardId], int | None] = lambda _card: None,
    ) -> None:
        """`library` is the folder of the preload library's versions."""
        self._ledger, self._registry, self._specs, self.folders = ledger, registry, Specs(root), Folders(root)
        self._library, self._write_line = library, line_writer(library)
        self._sessions, self._parking, self._watch = sessions, parking, watch
        self._timeslices, self._moving, self._permit = timeslices, moving, permit
        self._suspension = Suspension(
            registry=registry,
            moving=moving,
            checkpoints=checkpoints,
            background_tasks=background_tasks,
            note=self._note,
        )
        self._card_bytes = card_bytes

    # ---- Requests of root --------------------------------------------------------------------------------------------

    async def permit(self, question: Prepare | SetLimits) -> None:
        """Set the driver's limits. Await this before responding: it must not refuse what the broker then lends."""
        served = self._registry.served.get(question.key)
        if served is None and isinstance(question, Prepare):
            served = self._mate(question)
        if served is not None:
            keys = [each.spec.key for each in self._registry.of(served.budget.key)]
            for card, limit_bytes in tuple(permitted(served.spec, question)):
                await self._permit(keys, card, limit_bytes)

    def prepare(self, question: Prepare) -> Prepared:
        """Prepare for a container that is about to be created; raises a `BrokerError`."""
        served, mate = self._registry.served.get(question.key), self._mate(question)
        known = served.spec if served else None
        library = known.library if known else str(library_for_new(self._library))
        spec = spec_of(question, library=library, known=known, mate=mate.spec if mate else None)
        if served is None:
            require_one_allocator(spec, (each.spec for each in self._registry.served.values()))
        other = served or mate
        require_returned(spec, other.spec if other is not None else None, self._others(spec), self._card_bytes)
        if other is not None and other.spec.as_in(spec) is not other.spec:
            self._put(other, other.spec.as_in(spec))
        if served is None:
            self._begin(spec)
        elif served.spec.is_released:
            self._note(served, replace(served.spec, is_released=False))
        mounts = self.folders.mounts(spec.key, spec.library, spec.claim)
        return Prepared(
            mounts=mounts,
            enforces=self._timeslices.terms.enforced_on([card.id for card in spec.cards], moves=spec.moves),
            budget=spec.budget,
            is_claim=spec.is_claim,
            by_hook=spec.by_hook,
            engine_container=spec.engine_container,
        )

    def _others(self, spec: Spec) -> list[Held]:
        budgets = {served.budget.key: served.budget for served in self._registry.served.values()}
        budgets.pop(spec.budget_key, None)
        return [Held(card, each.charged(place)) for each in budgets.values() for place, card in enumerate(each.cards)]

    async def recall(self, key: ContainerKey) -> None:
        """Recall credit that a container's processes hold above a lowered limit."""
        served = self._registry.served.get(key)
        if served is not None:
            for number, card in enumerate(served.budget.cards):
                if card.most > card.memory:
                    await self._parking.recall(served.budget, number)

    def release(self, key: ContainerKey) -> None:
        """Mark a claim as no longer needed: it ends once no container has it. Raises a `BrokerError`."""
        served = self._registry.served.get(key)
        if served is not None and not served.spec.is_claim:
            raise SpecRefused(f"{key} is a container, which ends by itself")
        if served is not None and not served.spec.is_released:
            self._note(served, replace(served.spec, is_released=True))

    def entered(self, served: Served, container: EngineContainer) -> None:
        """Record that a container has the claim; raises `NoFolder` where that can't be written."""
        others = (each for each in served.spec.engine_containers if each.id != container.id)
        is_released = served.spec.is_released or served.spec.ends_with_last
        self._note(served, replace(served.spec, engine_containers=(*others, container), is_released=is_released))

    def left(self, served: Served, gone: Collection[EngineContainer]) -> None:
        """Record that containers have ended and no longer have the claim."""
        stay = tuple(each for each in served.spec.engine_containers if each not in gone)
        self._note(served, replace(served.spec, engine_containers=stay))

    def end(self, key: ContainerKey, listed: Container[ContainerKey]) -> bool:
        """End a released claim for which the runtime lists no container; return whether nothing is left of it."""
        served = self._registry.served.get(key)
        if served is None:
            return True
        lives = served.spec.engine_containers or any(each.state is not State.DEAD for each in served.budget.of(key))
        if not served.spec.is_released or key in listed or lives:
            return False
        self.forget(key)
        return True

    async def set_limits(self, question: SetLimits) -> LimitsSet:
        """Lower a limit, or reset it to the grant; raises a `BrokerError`.

        Credit lent before is recalled: after this returns, running processes hold none of it.
        """
        served = self._registry.served.get(question.key)
        if served is None:
            raise SpecRefused(f"no container {question.key} is known; `partage top` shows those that are")
        self._put(served, lowered(served.spec, question))
        number = served.budget.card_number(question.card)
        if number is None:
            raise SpecRefused(f"container {question.key} has no card {question.card}")
        if question.memory_bytes is not UNSET:
            await self._parking.recall(served.budget, number)
        card = served.budget.cards[number]
        return LimitsSet(
            memory_bytes=card.memory_in_force,
            charged_bytes=max(0, served.budget.charged(number)),
            share_milli=card.share_in_force,
            limit_milli=card.limit_in_force,
        )

    def suspend(self, question: Suspend) -> Suspended:
        """Suspend or resume a container with all that share its budget; raises a `BrokerError`."""
        served = self._registry.served.get(question.key)
        if served is None:
            raise SpecRefused(f"no container {question.key} is known; `partage top` shows those that are")
        spec = served.spec
        if not spec.moves:
            return self._suspension.ask(served, is_on=question.is_on)
        if "movable" not in self._timeslices.terms.enforced_on([card.id for card in spec.cards], moves=True):
            raise SpecRefused(
                f"the memory of container {spec.container} of pod {spec.pod.name} moves only on a card whose time is "
                "metered; set another policy for its card"
            )
        for each in self._registry.of(served.budget.key):
            if each.spec.is_suspended is not question.is_on:
                self._note(each, replace(each.spec, is_suspended=question.is_on))
        self._moving.put(served.spec)
        moving = self._moving.facts(served.budget.key, spec.cards[0].id)
        if moving is None:
            return Suspended(is_on=question.is_on, resident_bytes=0, moved_bytes=0, is_done=False)
        away = self._moving.is_away(served.budget.key, spec.cards[0].id)
        is_done = away if question.is_on else not (moving.moved or moving.is_out)
        return Suspended(
            is_on=question.is_on, resident_bytes=moving.resident, moved_bytes=moving.moved, is_done=is_done
        )

    # ---- Containers --------------------------------------------------------------------------------------------------

    def rebuild(self) -> tuple[str, ...]:
        """Restore the containers of an earlier broker; return a message for each fault."""
        specs, faults = self._specs.load()
        found = list(faults)
        for spec in specs:
            try:
                self._serve(spec)
            except BrokerError as error:
                found.append(str(error))
        for key in self.folders.names() - self._registry.served.keys() - {spec.key for spec in specs}:
            with contextlib.suppress(OSError):
                self.folders.remove(ContainerKey(key))
        return tuple(found)

    def forget(self, key: ContainerKey) -> None:
        """Remove a container; its budget ends with the last container. A claim that was entered meanwhile stays."""
        served = self._registry.served.get(key)
        if served is not None and served.spec.engine_containers:
            return
        served = self._registry.leave(key)
        if served is not None:
            served.close()
            is_last = not self._registry.of(served.budget.key)
            if is_last:
                self._timeslices.drop(served.budget.key)
                self._moving.drop(served.budget.key)
            self._specs.remove(served.spec, is_last=is_last)
        self._ledger.forget(key)
        self.folders.remove(key)

    def _begin(self, spec: Spec) -> None:
        """Write its file first: a folder without a file would be removed, but one with a file is created again."""
        try:
            self._specs.write(spec)
            self._serve(spec)
        except BrokerError:
            self._specs.remove(spec, is_last=not self._registry.of(spec.budget_key))
            self.folders.remove(spec.key)
            raise

    def _mate(self, question: Prepare) -> Served | None:
        """Another container that uses the same budget."""
        if question.budget is None:
            return None
        return next(iter(self._registry.of(budget_key(question.pod.uid, question.budget))), None)

    def _note(self, served: Served, spec: Spec) -> None:
        """Record a change of its state that changes no limit."""
        self._specs.write(spec)
        served.spec = spec

    def _put(self, served: Served, spec: Spec) -> None:
        """Set new limits for all containers that use the budget."""
        self._specs.write(spec)
        for each in self._registry.of(served.budget.key):
            each.spec = each.spec.as_in(spec)
        self._ledger.put(spec.key, spec.cards, spec.budget_key)
        self._timeslices.put(spec)
        self._moving.put(spec)

    def _serve(self, spec: Spec) -> None:
        listening = self.folders.make(spec.key, moves=spec.moves)
        try:
            page = Page(len(spec.cards), self._write_line)
        except OSError as error:
            listening.close()
            raise NoFolder(f"cannot serve container {spec.key}: {error.strerror}") from error
        budget = self._ledger.put(spec.key, spec.cards, spec.budget_key)
        served = Served(spec, budget, page, bucket=self._registry.bucket_of(spec.pod.namespace))
        served.listener = self._sessions.listener(served, listening)
        self._registry.enter(spec.key, served)
        self._timeslices.put(spec)
        self._moving.put(spec)
        self._suspension.go_on(served)
        for card in spec.cards:
            self._watch.prove(card.id)  # so that NVML is initialized when the first context is made

    # ---- Reports -----------------------------------------------------------------------------------------------------

    def facts(self) -> tuple[ContainerFacts, ...]:
        times = self._timeslices.shares()
        return tuple(picture(served, times, self._moving) for served in self._registry.served.values())

    def cards(self) -> frozenset[CardId]:
        return frozenset(card.id for served in self._registry.served.values() for card in served.budget.cards)

    def runtime_has(self, ids: Mapping[ContainerKey, AbstractSet[str]]) -> None:
        """Apply the runtime's list of container ids; disconnect processes that used another container's socket."""
        for served, session in self._registry.runtime_has(ids):
            _log.warning(
                "disconnected a process of another container from this container's socket",
                key=served.spec.key,
                pid=session.process.pid,
            )
            for connection in (session.calls, session.signals):
                if connection is not None:
                    connection.close()
