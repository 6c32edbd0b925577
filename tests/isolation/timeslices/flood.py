"""Processes of containers that want a card continuously, and the turns that they had."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

from rig.client.wait import until
from support.isolated import Contained, Isolated

_PROCESS: Final = Path(__file__).with_name("member_process.py")


class Turn(NamedTuple):
    """When it had the card, in nanoseconds."""

    began: int
    ended: int


class Flooder:
    """One process; `what` is one of `member_process`."""

    def __init__(self, container: Contained, what: str = "flood") -> None:
        path = os.pathsep.join(part for part in sys.path if part)
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_PROCESS), str(container.socket), what],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.turns: list[Turn] = []
        self._rest = b""
        assert self._process.stdout
        os.set_blocking(self._process.stdout.fileno(), False)
        self._is_ready, self.child = False, 0
        self.wait(lambda: self._is_ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()

    def more_turns(self, count: int) -> None:
        """Wait for this many more turns."""
        self.read()
        enough = len(self.turns) + count
        self.wait(lambda: len(self.turns) >= enough)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until this is true of its output."""
        out = self._process.stdout
        assert out

        def why_not() -> str | None:
            if condition():
                return None
            assert self._process.poll() is None, "the process has ended"
            select.select([out], [], [], 0.1)
            self.read()
            return f"turns so far: {len(self.turns)}"

        until(condition, why_not, every_s=0)

    def read(self) -> None:
        """The process's output so far."""
        assert self._process.stdout
        self._rest += self._process.stdout.read() or b""
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            words = line.split()
            if words[0] == b"ready":
                self._is_ready, self.child = True, int(words[1])
            else:
                self.turns.append(Turn(int(words[0]), int(words[1])))


@contextmanager
def flooders(*containers: Contained) -> Generator[list[Flooder]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Flooder(container)) for container in containers]


def overlap_ns(one: Flooder, other: Flooder) -> int:
    """Duration for which both had it."""
    return sum(
        max(0, min(mine.ended, theirs.ended) - max(mine.began, theirs.began))
        for mine in one.turns
        for theirs in other.turns
    )


def overlaps(place: Isolated) -> int:
    """How often the broker stopped waiting for a process's work."""
    cards = (card for each in place.told().containers for card in each.cards)
    return sum(card.time.overlaps for card in cards if card.time)
