"""The lives of processes in the books: how they come and come again, how they end, and what they let go of then.

Pure. What a process is after an event is said by the table in `states`.
"""

from __future__ import annotations

from typing import Final

from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.entries import Entries
from partage_isolation.broker.pieces import ProcessId
from partage_isolation.broker.sharing import Sharing
from partage_isolation.broker.states import Event, State
from partage_isolation.broker.wire import NO_TOKEN

MOST_PROCESSES: Final = 256
"""Of one container."""


class Lives:
    """In all containers."""

    def __init__(self, entries: Entries, sharing: Sharing) -> None:
        self._entries, self._sharing = entries, sharing

    # ---- They come ---------------------------------------------------------------------------------------------------

    def begin(self, container: Container, who: ProcessId, new_token: bytes) -> Process | None:
        """A process that has no token; None where there are too many."""
        known = container.processes.get(who)
        if known is None:
            return self._add(container, Process(container.key, *who, new_token))
        return None if known.state is State.DEAD else self._begin_anew(container, known, new_token)

    def resume(self, container: Container, who: ProcessId, token: bytes) -> Process | None:
        """A process that comes again with its token; None where that token is not its own."""
        process = container.by_token.get(token) if token != NO_TOKEN else None
        if process is None or process.id != who or process.state in (State.DEAD, State.FOUND):
            return None
        process.happens(Event.RESUMED)
        process.is_silent = False
        return process

    def restore(self, process: Process) -> bool:
        """A row that an earlier broker wrote, of a process that lives; False where its container is not known."""
        container = self._entries.containers.get(process.key)
        if container is None:
            return False
        process.happens(Event.RESTARTED)
        container.enter(process)
        return True

    def found(self, container: Container, who: ProcessId, token: bytes, *, card: int, amount: int) -> Process | None:
        """A process of the container that a card shows and that never came: what it holds is charged."""
        process = container.processes.get(who) or self._add(container, Process(container.key, *who, token, State.FOUND))
        if process is not None and card not in process.accounts:
            process.on(card).doubt(amount)
            self._entries.note(process, card)
        return process

    def _add(self, container: Container, process: Process) -> Process | None:
        has_room = len(container.processes) < MOST_PROCESSES
        return process if has_room and self._entries.add(container, process) else None

    def _begin_anew(self, container: Container, process: Process, token: bytes) -> Process:
        container.has_token(process, token)
        process.happens(Event.BEGAN_ANEW)
        process.is_silent = False
        self._entries.changed(process)
        self._sharing.gone(container, process)
        for card, account in process.accounts.items():
            account.begin_anew()
            self._entries.note(process, card)
        return process

    # ---- They go -----------------------------------------------------------------------------------------------------

    def hung_up(self, process: Process) -> None:
        """Its connection broke."""
        process.happens(Event.HUNG_UP)

    def died(self, process: Process, now_ns: int) -> None:
        """It is no more. What was lent to it comes back when the cards show nothing of it."""
        process.happens(Event.DIED)
        process.died_ns = now_ns
        container = self._entries.containers.get(process.key)
        if container is None or container.processes.get(process.id) is not process:
            return  # the container was forgotten; of its key there may be another by now
        if process.has_something:
            self._entries.changed(process)
        else:
            self._gone(container, process)

    def absent(self, container: Container, card: int, process: Process) -> None:
        """A sample that began after its death shows nothing of it on that card."""
        self._sharing.gone(container, process, card)
        self._entries.strike(container, process, card)
        if not process.has_something:
            self._gone(container, process)

    def forgotten(self, container: Container) -> None:
        """All of a container that is gone."""
        for process in list(container.processes.values()):
            self._sharing.gone(container, process)
            self._entries.remove(container, process)

    def _gone(self, container: Container, process: Process) -> None:
        process.happens(Event.ABSENT)
        self._sharing.gone(container, process)
        self._entries.remove(container, process)
