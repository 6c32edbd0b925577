"""The scheduler itself, which also records how long it delays each innocent pod: `python -m` this in its place.

Each line of the file that `NOTES` names is a pod's name and the scheduler's own part of its wait in seconds: from the
last turn of the loop before it received the pod, so that events that came while it was busy count, until the binding is
sent. The thread's waiting time for a processor is the machine's fault, and is left out.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from partage_scheduler.api.binder import Binder, Outcome
from partage_scheduler.cli import main
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Queue
from soak.siege.innocents import is_innocent
from support import procfs

MODULE: Final = "soak.siege.observed"
NOTES: Final = "PARTAGE_SOAK_NOTES"
_TURN_S: Final = 0.01


class Moment(NamedTuple):
    at: float
    waited_s: float
    """The time for which the thread has waited for a processor so far."""


def _now() -> Moment:
    return Moment(time.monotonic(), procfs.waited_s(os.getpid()))


class Notes:
    """Pure, given its clocks."""

    def __init__(self, write: Callable[[str], object], now: Callable[[], Moment] = _now) -> None:
        self._write, self._now = write, now
        self._turned: Moment | None = None
        self._heard: dict[str, Moment] = {}

    def turned(self) -> None:
        """A turn of the event loop: everything before it has been received."""
        self._turned = self._now()

    def heard(self, name: str) -> None:
        self._heard.setdefault(name, self._turned or self._now())

    def sent(self, name: str) -> None:
        """Only the first time; a binding that the API server did not accept is not the scheduler's fault."""
        since, now = self._heard.pop(name, None), self._now()
        if since is not None:
            self._write(f"{name} {now.at - since.at - (now.waited_s - since.waited_s):.6f}\n")


def noted(text: str) -> Mapping[str, float]:
    """The scheduler's own part, by pod."""
    return {name: float(own_s) for name, own_s in map(str.split, text.splitlines())}


def observe(notes: Notes) -> None:
    offer, bind = Queue.offer, Binder.bind
    is_turning = False

    def turn() -> None:
        notes.turned()
        asyncio.get_running_loop().call_later(_TURN_S, turn)

    def offered(self: Queue, pod: ApiPod, now: float) -> None:
        nonlocal is_turning
        if not is_turning:
            is_turning = True
            turn()
        if is_innocent(pod):
            notes.heard(pod.name)
        offer(self, pod, now)

    async def bound(self: Binder, pod: ApiPod, node: str, annotations: Mapping[str, str]) -> Outcome:
        if is_innocent(pod):
            notes.sent(pod.name)
        return await bind(self, pod, node, annotations)

    Queue.offer, Binder.bind = offered, bound  # type: ignore[method-assign]


if __name__ == "__main__":
    with open(os.environ[NOTES], "a", buffering=1, encoding="ascii") as file:  # noqa: PTH123 - a line at a time
        observe(Notes(file.write))
        main()
