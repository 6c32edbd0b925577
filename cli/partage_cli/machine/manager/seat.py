"""What one pod has of the cards: for the sandbox that runs, for its next one, or a turn that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from partage_cli.machine.manager.admission import Admission, Ticket
from partage_cli.machine.pods.pod import Pod
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import Allocation, PodUid
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE

_OURS = (ALLOCATION, SIGNATURE)
_log = structlog.get_logger()


class Seat:
    def __init__(self, admission: Admission, uid: PodUid, *, touched: Callable[[], None]) -> None:
        self._admission, self._uid, self._touched = admission, uid, touched
        self.allocation: Allocation | None = None
        """Of the sandbox that runs."""
        self.annotations: Mapping[str, str] = {}
        """Of the newest sandbox."""
        self._next: Allocation | None = None
        self._ticket: Ticket | None = None

    def promise(self, allocation: Allocation) -> None:
        """Held already, for the next sandbox."""
        self._next = allocation

    def turn(self, pod: Pod) -> bool:
        """Whether it has a place for its next sandbox; it waits in the queue where not. Raises `Objection`."""
        if self._next is not None:
            return True
        if self._ticket is None:
            self._ticket = self._admission.queue_up(self._admission.request(pod, self._uid))
            self._ticket.turn.add_done_callback(lambda _: self._touched())
        if not self._ticket.turn.done():
            return False
        ticket, self._ticket = self._ticket, None
        self._next = ticket.turn.result()
        return True

    def signed(self, gen: int) -> Mapping[str, str]:
        """Annotations for the next sandbox."""
        if self._next is None:
            raise AssertionError("a sandbox is made by a pod that has no place")
        return self._admission.annotations(self._next, gen)

    def moved(self, annotations: Mapping[str, str]) -> None:
        """The next sandbox is there."""
        self.allocation, self._next, self.annotations = self._next, None, annotations

    def found(self, annotations: Mapping[str, str], attempt: int, *, is_up: bool) -> None:
        """What the runtime has: it holds what its newest sandbox says, while that or anything in it runs."""
        self.annotations = {key: annotations[key] for key in _OURS if key in annotations}
        if is_up:
            self._next = None
            try:
                self.allocation = self._admission.written(self.annotations, self._uid, attempt + 1)
                self._admission.hold(self.allocation)
            except PartageError as error:
                self.allocation = None
                _log.error("what a pod was given can't be read, and is not counted", pod=self._uid, why=str(error))
        elif self._next is None:
            self.free()

    def leave_queue(self) -> None:
        if self._ticket is not None:
            self._ticket = None
            self._admission.leave(self._uid)

    def free(self) -> None:
        """It holds nothing, and waits for nothing."""
        self.leave_queue()
        self.allocation = self._next = None
        self._admission.release(self._uid)
