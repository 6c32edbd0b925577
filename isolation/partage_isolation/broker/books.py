"""All containers that the broker serves: how they begin, change, are told of and end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import structlog
from msgspec import UNSET

from partage_isolation.broker.containers import Process
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.facts import ContainerFacts
from partage_isolation.broker.folders import Folders
from partage_isolation.broker.identities import Identities
from partage_isolation.broker.leases import Leases
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.page import Page
from partage_isolation.broker.parking import Parking
from partage_isolation.broker.picturing import picture
from partage_isolation.broker.served import Served
from partage_isolation.broker.sessions import Sessions
from partage_isolation.broker.sockets import Connection, Listener
from partage_isolation.broker.specs import Spec, Specs, lowered, spec_of
from partage_isolation.control.questions import LimitsSet, Prepare, Prepared, SetLimits
from partage_isolation.errors import BrokerError, NoFolder, SpecRefused
from partage_isolation.library.pages import WriteLine
from partage_plugins.vocabulary.kinds import Promise
from partage_plugins.vocabulary.names import CardId, ContainerKey

_log = structlog.get_logger()


class Books:
    """Of one node."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        specs: Specs,
        folders: Folders,
        library: Callable[[], str],
        counters: Counters,
        write_line: WriteLine,
        enforced_on: Callable[[Iterable[CardId]], tuple[Promise, ...]],
        will_use: Callable[[CardId], None] = lambda _: None,
    ) -> None:
        """`library` is the folder of the one that new containers get; `will_use` hears of their cards.

        `enforced_on` says what is in force for a container with those cards.
        """
        self._ledger, self._specs, self._folders = ledger, specs, folders
        self._library, self._counters, self._will_use = library, counters, will_use
        self._write_line, self._enforced_on = write_line, enforced_on
        self.served: dict[ContainerKey, Served] = {}
        self.identities = Identities(self.served)
        self.sessions: Sessions
        self.parking: Parking
        self.leases: Leases

    # ---- Questions of root -------------------------------------------------------------------------------------------

    def prepare(self, question: Prepare) -> Prepared:
        """A container is about to be created; raises a `BrokerError`."""
        served = self.served.get(question.key)
        known = served.spec if served else None
        spec = spec_of(question, library=known.library if known else self._library(), known=known)
        if served is None:
            self._begin(spec)
        elif spec != served.spec:
            self._put(served, spec)
        mounts = self._folders.mounts(spec.key, spec.library)
        return Prepared(mounts=mounts, enforces=self._enforced_on(card.id for card in spec.cards))

    async def set_limits(self, question: SetLimits) -> LimitsSet:
        """A lower limit, or the grant's again; raises a `BrokerError`.

        Credit that was lent before is recalled: once this returns, who runs has none of it left.
        """
        served = self.served.get(question.key)
        if served is None:
            raise SpecRefused(f"no container {question.key} is known; `partage top` shows those that are")
        self._put(served, lowered(served.spec, question))
        number = served.container.card_number(question.card)
        if number is None:
            raise SpecRefused(f"container {question.key} has no card {question.card}")
        if question.memory_bytes is not UNSET:
            await self.parking.recall(served.container, number)
        book = served.container.cards[number]
        return LimitsSet(
            memory_bytes=book.limit,
            charged_bytes=max(0, served.container.charged(number)),
            share_milli=book.share,
            limit_milli=book.limit_milli,
        )

    # ---- Containers --------------------------------------------------------------------------------------------------

    def rebuild(self) -> tuple[str, ...]:
        """All that an earlier broker knew; what is wrong with some of them, a sentence each."""
        specs, faults = self._specs.load()
        found = list(faults)
        for spec in specs:
            try:
                self._serve(spec)
            except BrokerError as error:
                found.append(str(error))
        for key in self._folders.names() - self.served.keys() - {spec.key for spec in specs}:
            with contextlib.suppress(OSError):
                self._folders.remove(ContainerKey(key))
        return tuple(found)

    def forget(self, key: ContainerKey) -> None:
        """The container is gone from the runtime."""
        served = self.served.pop(key, None)
        if served is not None:
            served.close()
            self.leases.drop(key)
        self._ledger.forget(key)
        self._specs.remove(key)
        self._folders.remove(key)

    def ended(self, process: Process) -> None:
        """A process is no more."""
        served = self.served.get(process.key)
        session = served.sessions.pop(process.id, None) if served else None
        if session is not None:
            session.close()

    def signals_of(self, process: Process) -> Connection | None:
        """Where it takes hints."""
        served = self.served.get(process.key)
        session = served.sessions.get(process.id) if served else None
        return session.signals if session is not None and session.process is process else None

    def close(self) -> None:
        """Ends all connections; containers, limits and rows stay for the next broker."""
        for served in self.served.values():
            served.close()

    def _begin(self, spec: Spec) -> None:
        """Its file comes first: a folder without one would be removed, one with one is made anew."""
        self._specs.write(spec)
        try:
            self._serve(spec)
        except BrokerError:
            self._specs.remove(spec.key)
            self._folders.remove(spec.key)
            raise

    def _put(self, served: Served, spec: Spec) -> None:
        self._specs.write(spec)
        served.spec = spec
        self._ledger.put(spec.key, [card.book() for card in spec.cards])
        self.leases.put(spec)

    def _serve(self, spec: Spec) -> None:
        listening = self._folders.make(spec.key)
        try:
            container = self._ledger.put(spec.key, [card.book() for card in spec.cards])
            served = Served(spec, container, Page(len(spec.cards), self._write_line))
        except OSError as error:
            listening.close()
            raise NoFolder(f"cannot serve container {spec.key}: {error.strerror}") from error
        served.listener = Listener(
            listening, on_connection=partial(self.sessions.connected, served), counters=self._counters
        )
        self.served[spec.key] = served
        self.leases.put(spec)
        for card in spec.cards:
            self._will_use(card.id)

    # ---- What others are told ----------------------------------------------------------------------------------------

    def facts(self) -> tuple[ContainerFacts, ...]:
        """How it is now."""
        times = self.leases.shares()
        return tuple(picture(served, times) for served in self.served.values())

    def cards(self) -> frozenset[CardId]:
        """Those that any container has."""
        return frozenset(card.id for served in self.served.values() for card in served.container.cards)

    def runtime_has(self, ids: Mapping[ContainerKey, str]) -> None:
        """The runtime's ids of containers. Whoever came by a socket that is not his container's is let go."""
        for served, session in list(self.identities.runtime_has(ids)):
            _log.warning(
                "a process of another container came by this one's socket and is let go",
                key=served.spec.key,
                pid=session.process.pid,
            )
            for connection in (session.calls, session.signals):
                if connection is not None:
                    connection.close()
