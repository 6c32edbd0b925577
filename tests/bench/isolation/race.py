"""Processes that allocate and free memory by every path at once, of which some are killed and some stopped midway.

In each round all of them operate; then nothing moves and accounts can be compared. How a process is run, in a container
or beside one, metered or not, is up to the caller: here it is an environment. Checks:

- the card's own peak: only simgpud writes it, at every operation;
- refusals: each program judges its own, by the claims of all processes meanwhile (claims.h of the programs);
- memory of dead processes: it is claimed until `Course.settled` returns and must then be available to others. Memory
  that others have open is claimed by these.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.isolation.claims import Claims
from bench.isolation.programs import programs

_NAP_S: Final = 0.005


class Delays:
    """How late a sleeping thread is woken, told with failures: the broker waits for others 50 to 100 ms."""

    def __init__(self) -> None:
        self._longest_s, self._woken_at = 0.0, time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="delays", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def longest_s(self) -> float:
        """The longest delay since the last `renew`, including one that is in progress."""
        return max(self._longest_s, time.monotonic() - self._woken_at - _NAP_S)

    def renew(self) -> None:
        self._longest_s = 0.0

    def _watch(self) -> None:
        self._woken_at = time.monotonic()
        while not self._ended.wait(_NAP_S):
            now = time.monotonic()
            self._longest_s = max(self._longest_s, now - self._woken_at - _NAP_S)
            self._woken_at = now


MIB: Final = 1 << 20
KINDS: Final = "plain,small,pitch,managed,pool,own-pool,array,mipmaps,mapped,graph,context,opened"
"""Every path; the last one is each other's memory, by IPC."""
_RETURNED_S: Final = 0.1
_LATEST_S: Final = 0.02
_NO_ROOM: Final = 3
_END_S: Final = 60.0


@dataclass(frozen=True)
class Course:
    environment: Mapping[str, str]
    """The environment of its processes, which are in one container."""
    limit: int
    context_mib: int
    card: int = 0
    processes: int = 6
    threads: int = 4
    operations: int = 20
    mib: int = 64
    kinds: str = KINDS
    seed: int = 1
    others: Sequence[Mapping[str, str]] = ()
    """Environments of further containers with the same common limit: slots alternate between them."""
    may_be_away: bool = False
    """Whether the broker is stopped: a call whose wait for it times out is then no fault."""
    settled: Callable[[int], None] = lambda _: time.sleep(_RETURNED_S)
    """Returns when everything that the dead process with this pid had must be available to others."""
    charged: Callable[[int], int] = lambda _: 0
    """The broker's current charge of the living process with this pid: lent, and for its contexts."""

    def environment_of(self, slot: int) -> Mapping[str, str]:
        all_of_them = (self.environment, *self.others)
        return all_of_them[slot % len(all_of_them)]


@dataclass
class Seen:
    rounds: int = 0
    operations: int = 0
    refused: int = 0
    refused_starts: int = 0
    opened: int = 0
    killed: int = 0
    stopped: int = 0
    wrong: list[str] = field(default_factory=list[str])


class Racer:
    def __init__(self, course: Course, claims: Claims, slot: int, seed: int) -> None:
        words = {
            "page": claims.path,
            "slot": slot,
            "card": course.card,
            "threads": course.threads,
            "operations": course.operations,
            "mib": course.mib,
            "context-mib": course.context_mib,
            "seed": seed,
            "kinds": course.kinds,
        }
        argv = [
            str(programs() / "race"),
            *(word for name, value in words.items() for word in (f"--{name}", str(value))),
        ]
        self.process = subprocess.Popen(
            argv, bufsize=0, env=dict(course.environment_of(slot)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.ready = False

    def answer(self) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return dict(json.loads(line)) if line.endswith(b"\n") else None

    def begin(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"\n")

    def send(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def finish(self) -> int:
        """Ends it without freeing memory; returns its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(timeout=_END_S)
        self.process.stdout.close()
        return status


class Race:
    """The course's number of processes, in slots: those killed or without room are replaced."""

    def __init__(self, course: Course, page: Path) -> None:
        self.course, self.seen = course, Seen()
        self._claims = Claims(page, course.limit)
        self._random = random.Random(course.seed)  # noqa: S311 (choices that can be repeated)
        self._racers: list[Racer | None] = [None] * course.processes
        self._delays = Delays()
        self.asleep: int | None = None
        """The pid of the stopped process."""

    def __enter__(self) -> Self:
        self._delays.__enter__()
        self._fill()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        for racer in self._racers:
            if racer is not None:
                racer.send(signal.SIGKILL)
                racer.finish()
        self._claims.__exit__(None, None, None)
        self._delays.__exit__(None, None, None)

    @property
    def pids(self) -> list[int]:
        return [racer.process.pid for racer in self._racers if racer is not None]

    def round(self, meanwhile: Callable[[], None] = lambda: None, *, is_calm: bool = False) -> None:
        """All operate; unless calm, one is killed, one is stopped for a while, and `meanwhile` is called."""
        running = [slot for slot, racer in enumerate(self._racers) if racer is not None]
        has_victims = len(running) > 1 and not is_calm
        victim, sleeper = self._random.sample(running, 2) if has_victims else (-1, -1)
        self._delays.renew()
        for slot in running:
            self._of(slot).begin()
        time.sleep(self._random.uniform(0, _LATEST_S))  # so that signals hit all kinds of calls
        if victim >= 0:
            self._stop(sleeper)
            self._kill(victim)
        meanwhile()
        for slot in running:
            if slot not in (victim, sleeper):
                self._hear(slot)
        if victim >= 0:
            self._go_on(sleeper)
        self.seen.rounds += 1
        self._claims.set_right()
        self._fill()

    def send(self, number: signal.Signals) -> None:
        for racer in self._racers:
            if racer is not None:
                racer.send(number)

    def finish(self) -> None:
        for slot, racer in enumerate(self._racers):
            if racer is not None and (status := racer.finish()):
                raise SystemExit(f"race: the process in slot {slot} ended with {status}")
            self._racers[slot] = None

    def _of(self, slot: int) -> Racer:
        racer = self._racers[slot]
        assert racer is not None
        return racer

    def _kill(self, slot: int) -> None:
        racer = self._of(slot)
        racer.send(signal.SIGKILL)
        racer.finish()
        self._racers[slot] = None
        self.seen.killed += 1
        self.course.settled(racer.process.pid)
        self._claims.forget(slot)

    def _stop(self, slot: int) -> None:
        """What the broker charges the process beyond its claims is unavailable to others until it continues."""
        pid = self.asleep = self._of(slot).process.pid
        self._of(slot).send(signal.SIGSTOP)
        self.seen.stopped += 1
        before, now = -1, self.course.charged(pid)
        while now != before:  # requests from before the stop may be answered in between
            self._claims.excuse(max(0, now - self._claims.of(slot)))
            before, now = now, self.course.charged(pid)

    def _go_on(self, slot: int) -> None:
        self._of(slot).send(signal.SIGCONT)
        self.asleep = None
        self._hear(slot)
        self._claims.excuse(0)

    def _hear(self, slot: int) -> None:
        told = self._of(slot).answer()
        if told is None:
            raise SystemExit(f"race: the process in slot {slot} ended with {self._of(slot).finish()} in a round")
        self.seen.operations += told["operations"]
        self.seen.refused += told["refused"]
        self.seen.opened += told["opened"]
        if told["away"] and not self.course.may_be_away:
            raise SystemExit(f"race: in slot {slot} {told['away']} calls found no broker")
        if told["wrong"]:
            self._wrong(f"{told['wrong']} in round {self.seen.rounds}, slot {slot}: {told['first']}")

    def _fill(self) -> None:
        """Starts a process in each empty slot, all at once; those without room are retried after a round."""
        empty = [slot for slot, racer in enumerate(self._racers) if racer is None]
        started = {slot: Racer(self.course, self._claims, slot, self._random.randrange(1 << 32)) for slot in empty}
        for slot, racer in started.items():
            told = racer.answer() or {}
            if told.get("ready"):
                self._racers[slot] = racer
                continue
            status = racer.finish()
            if status != _NO_ROOM:
                raise SystemExit(f"race: a process ended with {status} before it began")
            self.seen.refused_starts += 1
            if told["wrong"]:
                self._wrong(f"a context was refused with room for {told['room']} bytes more")

    def _wrong(self, what: str) -> None:
        self.seen.wrong.append(f"{what}; in that round this machine was late by up to {self._delays.longest_s:.3f} s")


def run(course: Course, page: Path, *, rounds: int, after: Callable[[Race], None] = lambda _: None) -> Seen:
    """Runs rounds, and checks the accounts after each."""
    with Race(course, page) as race:
        for _ in range(rounds):
            race.round()
            after(race)
        race.finish()
        return race.seen
