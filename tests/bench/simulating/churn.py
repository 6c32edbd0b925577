"""Processes that take and give back memory of every kind at random, some of which are killed or stopped at it.

How they are started is someone else's to say; all that counts here is by which pid simgpud knows them.

After each round nothing moves: then each process must hold on the card, by the card's own books, just the bytes that it
says it holds and its context; and the card as a whole what its processes hold.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from partage_simgpu.status import CardStatus
from rig.patience import Wait, in_vain
from support.simgpu import SimulatedNode, built

_MIB: Final = 1 << 20
_LARGEST_MIB: Final = 64
_TOO_FULL: Final = "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)"
_NOTHING: Final = '{"error": "it ended without a word"}'
_LATEST_S: Final = 0.005


class Started(NamedTuple):
    """A program, and the process of ours that speaks with it: the same one, or one that passes all on."""

    process: subprocess.Popen[bytes]
    pid: int
    """The program's own, as simgpud and we see it."""


Start = Callable[[Sequence[str]], Started]


def outside(node: SimulatedNode) -> Start:
    def start(arguments: Sequence[str]) -> Started:
        process = subprocess.Popen(
            [built() / "allocate", *arguments],
            bufsize=0,
            env=node.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return Started(process, process.pid)

    return start


class Churner:
    def __init__(self, start: Start, operations: int, seed: int) -> None:
        options = ("--kind", "random", "--count", str(operations), "--seed", str(seed), "--mib", str(_LARGEST_MIB))
        self._process, self.pid = start(options)

    def begin(self) -> None:
        """A round of operations, unless it could not begin."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")

    def end(self) -> int | None:
        """Waits for the end of the round; the bytes that it holds. None: the card was too full for it to begin."""
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline() or _NOTHING)
        if told.get("error") == _TOO_FULL:
            return None
        if "holds" not in told:
            raise SystemExit(f"allocate failed: {told['error']}")
        return int(told["holds"])

    def send(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def finish(self) -> None:
        """It gives everything back and ends, or has been killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Churning:
    """Several of them on the first card of a node: one for each start, by which it is replaced when it has ended."""

    def __init__(
        self, node: SimulatedNode, starts: Sequence[Start], *, operations: int, context_mib: int, seed: int
    ) -> None:
        self._node, self._starts, self._operations, self._context = node, starts, operations, context_mib * _MIB
        self._random = random.Random(seed)  # noqa: S311 (choices that can be repeated)
        self._churners = [self._another(start) for start in starts]
        self.done = self.killed = self.stopped = self.compared = 0
        self.pids: set[int] = set()
        """Of those that were compared in the last round; they live."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        for churner in self._churners:
            churner.send(signal.SIGKILL)
            churner.finish()

    def round(self) -> list[str]:
        """All operate at once; one is killed at it, and one is stopped for a while. What does not add up after it."""
        victim, sleeper = self._random.sample(range(len(self._churners)), 2)
        for churner in self._churners:
            churner.begin()
        time.sleep(self._random.uniform(0, _LATEST_S))  # so that signals hit any of their calls
        self._churners[sleeper].send(signal.SIGSTOP)
        self._churners[victim].send(signal.SIGKILL)
        ends = {index: each.end() for index, each in enumerate(self._churners) if index not in (victim, sleeper)}
        self._churners[sleeper].send(signal.SIGCONT)
        ends[sleeper] = self._churners[sleeper].end()
        self.killed, self.stopped = self.killed + 1, self.stopped + 1
        holds = {self._churners[index].pid: bytes_ for index, bytes_ in ends.items() if bytes_ is not None}
        self.done += self._operations * len(holds)
        for index in [victim, *(index for index, bytes_ in ends.items() if bytes_ is None)]:
            self._replace(index)
        return self._compared(holds)

    def finish(self) -> list[str]:
        """All give back what they have and end. What is left then."""
        for churner in self._churners:
            churner.finish()
        self._churners = []
        status = self._status_of(set())
        return [] if status.used_bytes == 0 else [f"{status.used_bytes} bytes are left when all have ended"]

    def _replace(self, index: int) -> None:
        self._churners[index].finish()
        self._churners[index] = self._another(self._starts[index])

    def _another(self, start: Start) -> Churner:
        return Churner(start, self._operations, self._random.randrange(1 << 32))

    def _compared(self, holds: dict[int, int]) -> list[str]:
        status = self._status_of(set(holds))
        told = {process.pid: process.bytes for process in status.processes}
        self.compared, self.pids = self.compared + len(holds), set(holds)
        wrong = [
            f"process {pid} holds {bytes_} bytes and a context, the card says {told.get(pid)}"
            for pid, bytes_ in holds.items()
            if told.get(pid) != bytes_ + self._context
        ]
        if status.used_bytes != sum(told.values()):
            wrong.append(f"the card says {status.used_bytes} bytes, its processes {sum(told.values())}")
        return wrong

    def _status_of(self, living: set[int]) -> CardStatus:
        """Once the killed ones are gone from the books; those that just begin may not be there yet."""
        new = {churner.pid for churner in self._churners} - living
        wait = Wait()
        while True:
            status = self._node.status()[0]
            if {process.pid for process in status.processes} - new == living:
                return status
            if not wait.left_s():
                raise in_vain("dead processes go from the card's books", status.processes, wait)
            time.sleep(0.001)
