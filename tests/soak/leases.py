"""The broker is killed a hundred times under programs that want a card all the time, and so are they.

    make soak-leases             # 100 brokers, some ten minutes
    tools/named soak leases --kills 5

Three containers with shares of 50, 30 and 20 %, each of two programs that flood the simulated card. In each round
something happens to one of the programs (it is killed and another one comes, stops, or goes on), the broker is killed
and started, and everybody must have turns again. In every fifth round nothing else happens for a while, and what each
container gets from the second second on is held against its share. It prints what it found and, as its last line, one
JSON object. Exit status: 0 when all is well, 3 when somebody hung or shares stayed wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Final

from partage_isolation.library.objects import built as built_library
from partage_isolation.wire.messages import TimeTold
from partage_simgpu.build import built as built_programs
from support.isolated import Contained, Isolated, isolated, until
from support.simgpu import card

EXIT_WRONG: Final = 3
SHARES: Final = (500, 300, 200)
PROGRAMS_EACH: Final = 2
MEASURED_EVERY: Final = 5
RIGHT_AFTER_S: Final = 2.0
MEASURED_S: Final = 3.0
MOST_OFF: Final = 0.10
"""Of a window so short, on a machine that does other things as well; over a long time it is a tenth of that."""
_FOREVER: Final = "100000"


class Crowd:
    """All programs of one container; those that were killed are replaced."""

    def __init__(self, container: Contained, stack: ExitStack) -> None:
        self.container, self._stack = container, stack
        container.install(built_library())
        self.programs = [self._another() for _ in range(PROGRAMS_EACH)]
        until(self.is_there)

    def happens(self, chance: random.Random) -> str:
        number, what = chance.randrange(PROGRAMS_EACH), chance.choice(["kill", "stop", "go on"])
        program = self.programs[number]
        if what == "kill":
            program.kill()
            program.wait()
            self.programs[number] = self._another()
            until(self.is_there)  # one that begins while no broker is there is refused memory, and ends
        else:
            program.send_signal(signal.SIGSTOP if what == "stop" else signal.SIGCONT)
        return what

    def go_on(self) -> None:
        for program in self.programs:
            program.send_signal(signal.SIGCONT)

    def is_there(self) -> bool:
        """All of its programs have joined, of this broker; none may have ended by itself."""
        assert all(program.poll() is None for program in self.programs), "a program has ended"
        return self.time().processes == PROGRAMS_EACH

    def has_turns(self) -> bool:
        return self.is_there() and self.time().leases > 1

    def busy_ns(self) -> int:
        pids = {program.pid for program in self.programs}
        return sum(each.busy_ns for each in self.container.place.node.status()[0].processes if each.pid in pids)

    def time(self) -> TimeTold:
        told = self.container.told().cards[0].time
        assert told is not None
        return told

    def _another(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.container.place.node.environment, "LD_PRELOAD": self.container.preload}
        argv = [str(built_programs() / "flood"), "--kernel-us", "500", "--seconds", _FOREVER]
        program = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL)
        self._stack.callback(_end, program)
        return program


def _end(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak leases", description="brokers and programs die under load")
    parser.add_argument("--kills", type=int, default=100, help="how many brokers, by default 100")
    parser.add_argument("--seed", type=int, default=1, help="of what happens, by default 1")
    told = parser.parse_args()
    chance = random.Random(told.seed)  # noqa: S311  chooses what happens
    node_card = card("t4", memory_mib=8192, reserved_mib=100, context_mib=64)
    with isolated(cards=(node_card,), library=built_library()) as place, ExitStack() as stack:
        crowds = [Crowd(place.prepare(share=share), stack) for share in SHARES]
        worst = [_round(place, crowds, chance, number) for number in range(1, told.kills + 1)]
    off = max((each for each in worst if each is not None), default=0.0)
    found = {"soak": "leases", "kills": told.kills, "seed": told.seed, "worst_off": round(off, 4)}
    sys.stdout.write(f"{told.kills} brokers killed; worst share of {MEASURED_S:g} s is off by {100 * off:.1f} points\n")
    sys.stdout.write(f"{json.dumps(found)}\n")
    return EXIT_WRONG if off > MOST_OFF else 0


def _round(place: Isolated, crowds: list[Crowd], chance: random.Random, number: int) -> float | None:
    """One broker's death; how far off the worst share was, where that was looked at."""
    what = chance.choice(crowds).happens(chance)
    time.sleep(chance.random() * 0.2)
    place.broker.kill()
    time.sleep(chance.random() * 0.2)
    place.broker.start()
    for crowd in crowds:
        crowd.go_on()
    until(
        lambda: all(crowd.has_turns() for crowd in crowds),
        why=lambda: f"somebody has no turns, after {what}: {[crowd.time() for crowd in crowds]}",
    )
    if number % MEASURED_EVERY:
        return None
    time.sleep(RIGHT_AFTER_S)
    shares, used = _measured(crowds)
    off = max(abs(each - share / sum(SHARES)) for each, share in zip(shares, SHARES, strict=True))
    sys.stderr.write(f"{number} brokers, worst share off by {100 * off:.1f} points\n")
    if off > MOST_OFF:
        _tell(crowds, shares, used, what)
    return off


def _measured(crowds: list[Crowd]) -> tuple[list[float], float]:
    """Shares of what was used of the card, and how much that was."""
    before = [crowd.busy_ns() for crowd in crowds]
    time.sleep(MEASURED_S)
    got = [crowd.busy_ns() - was for crowd, was in zip(crowds, before, strict=True)]
    return [each / max(1, sum(got)) for each in got], sum(got) / MEASURED_S / 1e9


def _tell(crowds: list[Crowd], shares: list[float], used: float, what: str) -> None:
    """What the broker knows of who had how much."""
    sys.stderr.write(f"    {used:.3f} of the card was used\n")
    for crowd, share in zip(crowds, shares, strict=True):
        sys.stderr.write(f"    had {share:.3f} after {what}: {crowd.time()}\n")


if __name__ == "__main__":
    sys.exit(main())
