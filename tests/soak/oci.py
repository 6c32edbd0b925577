"""Containers with shares come and go on real Docker and Podman while the components below them are killed.

    make soak-oci                # 20 seeds of 300 steps each
    tools/named soak oci --seeds 1 --steps 60 --seed 7

One machine with two simulated cards. Three users create, remove, kill and start containers concurrently, two by Docker
and one by Podman; meanwhile the agent, the broker, dockerd, or the shim of a container is killed. After each round all
are waited for. Then no card is given away twice; exactly the running containers hold a share, in the agent and in the
broker; the rest of a card can be allocated; and every refusal had a message of ours that fits what was killed. An
engine's own errors are excused only in a round in which dockerd or a shim was killed. In the end nothing is held. A
seed ends at the first error.

A seed determines only the steps; which of them coincide depends on the machine.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal

from rig.client.wait import until
from rig.errors import NeverHappened
from rig.lone import CHECKOUT
from soak.harness import ended, options, say
from support.engine_stage import PROGRAM, RUNTIME, VISIBLE, SharesStage, install_program, shares_on
from support.engines.docker import DEBIANS, Docker, dockerd_on
from support.engines.engine import Engine, engine_programs
from support.engines.machines import engine_machines
from support.engines.podman import PODMAN, Podman, podman_on
from support.isolation_stage import told_by
from support.machine_image import workloads

STEPS_A_ROUND: Final = 15
CARDS: Final = ("l4", "l4")
MILLI: Final = (100, 200, 300, 500, 700, 1000)
LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-oci"
_WHOLE: Final = 1000
_MOST_OF_A_USER: Final = 6
_OURS: Final = "partage: "
_LEFT: Final = ": already exists"
"""End of Docker's message for a container of which an earlier kill of dockerd has left a task in its containerd."""
_GONE: Final = ("no such container", "marked for removal")
"""In Docker's messages for a container whose create or removal was cut off."""
_NO_ROOM: Final = "no card has a share of"
_RIGHT_WITHIN_S: Final = 30.0
Killed = Literal["agent", "broker", "dockerd", "shim"]
_AWAY: Final[Mapping[Killed, Sequence[str]]] = {
    "agent": ("no agent answers at", "the agent at"),
    "broker": ("no broker answers on this machine",),
    "dockerd": (),
    "shim": (),
}
"""Prefixes of our messages in a round in which this was killed, besides the one for a lack of room."""


@dataclass
class Seen:
    steps: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    """Counts by the message's prefix; `excused` counts engines' errors while one of their own processes was killed."""
    wrong: list[str] = field(default_factory=list[str])


class User:
    """A user with separate containers, at one engine."""

    def __init__(self, name: str, engine: Engine, seed: int, seen: Seen) -> None:
        self.engine, self._name, self._seen, self._numbers = engine, name, seen, count(1)
        self._chance = random.Random(f"{name} {seed}")  # noqa: S311  chooses what happens
        self._names: list[str] = []

    def look(self) -> None:
        """List containers: a killed engine may keep refused ones, and lose others."""
        names = self.engine.said("ps", "-a", "--format", "{{.Names}}").split()
        self._names = [each for each in names if each.startswith(f"{self._name}-")]

    def steps(self, number: int, killed: Killed) -> None:
        """Run steps while that component is killed."""
        for _ in range(number):
            done = self._step()
            if done:
                self._judge(*done, killed)

    def _step(self) -> tuple[str, int, str] | None:
        """The action that may be refused, its status, and its output."""
        one = self._chance.choice(self._names) if self._names else ""
        what = self._chance.choices(["create", "remove", "start", "kill", "short"], [5, 3, 2, 2, 2])[0]
        if len(self._names) >= _MOST_OF_A_USER:
            what = "remove"
        elif not one:
            what = "create"
        self._seen.steps[what] += 1
        match what:
            case "remove":
                self._names.remove(one)
                self.engine.done("rm", "-f", one)
                return None
            case "kill":  # as a crash: its engine restarts it by its policy
                pid = self.engine.done("inspect", "-f", "{{.State.Pid}}", one).stdout.strip()
                if pid.isdigit() and pid != "0":
                    self.engine.program("kill", "-KILL", pid)
                return None
            case "start":
                done = self.engine.done("start", one)
                is_gone = any(words in done.stderr.lower() for words in _GONE)
                return None if is_gone else (what, done.returncode, done.stderr)
            case _:
                return self._create(what)

    def _create(self, what: str) -> tuple[str, int, str]:
        name = f"{self._name}-{next(self._numbers)}"
        self._names.append(name)
        command = ("sleep", "100000") if what == "create" else ("true",)
        restart = ("--restart", self._chance.choice(["no", "always"])) if what == "create" else ()
        share = f"PARTAGE_SHARE={self._chance.choice(MILLI)}"
        flags = ("-d", "--runtime", RUNTIME, "--name", name, "-e", share, *restart)
        done = self.engine.done("run", *flags, "tools", *command)
        return what, done.returncode, done.stderr

    def _judge(self, what: str, status: int, said: str, killed: Killed) -> None:
        why = said.rpartition(_OURS)[2]
        begins = next((each for each in (_NO_ROOM, *_AWAY[killed]) if why.startswith(each)), "")
        if status == 0:
            self._seen.steps[f"{what}: done"] += 1
        elif begins and _OURS in said:
            self._seen.refused[begins] += 1
        elif _OURS not in said and (killed in {"dockerd", "shim"} or _LEFT in said):
            self._seen.refused["excused"] += 1
        else:
            self._seen.wrong.append(f"{what} failed while {killed} was killed: {said.strip()[-300:]}")


@dataclass(frozen=True)
class Soak:
    stage: SharesStage
    docker: Docker
    podman: Podman

    def seed(self, seed: int, steps: int) -> Seen:
        """Everything has ended when it returns."""
        chance, seen = random.Random(seed), Seen()  # noqa: S311  chooses what happens
        engines: Sequence[Engine] = (self.docker, self.docker, self.podman)
        users = [User(f"user{number}", engine, seed, seen) for number, engine in enumerate(engines)]
        for _ in range(max(1, steps // STEPS_A_ROUND)):
            self._round(users, chance, seen)
            self._judge(seen)
            if seen.wrong:
                break
        for engine in (self.docker, self.podman):
            engine.end_all()
        self._wait(seen, "nothing is held any more", self._why_held)
        return seen

    def _round(self, users: Sequence[User], chance: random.Random, seen: Seen) -> None:
        """All users' steps and a kill, concurrently; all daemons run when it returns."""
        killed = chance.choice(list(_AWAY))
        seen.steps[f"{killed} killed"] += 1
        with ThreadPoolExecutor(len(users)) as beside:
            works = [beside.submit(each.steps, STEPS_A_ROUND // len(users), killed) for each in users]
            self._kill(killed, chance.random())  # by this thread: processes that it starts end with it
        for each in works:
            each.result()
        if killed == "dockerd":
            self._remove_lost()
        for user in users:
            user.look()

    def _remove_lost(self) -> None:
        """Remove what a killed dockerd was starting and does not run, as its user does: it has its share till then."""
        for each in self.stage.held():
            state = self.docker.program(each["runtime"], "--root", each["root"], "state", each["id"]).stdout
            is_alive = '"status": "created"' in state or '"status": "running"' in state
            if is_alive and each["id"] not in self.docker.running() | self.podman.running():
                self.docker.done("rm", "-f", each["id"])

    def _kill(self, killed: Killed, when: float) -> None:
        """Within a second; daemons are restarted at once."""
        time.sleep(when)
        if killed == "shim":
            running = sorted(self.docker.running())
            if running:
                pattern = f"containerd-shim.* -id {running[int(when * len(running))]}"
                self.docker.program("pkill", "-KILL", "-f", pattern)
            return
        component = {"agent": self.stage.agent, "broker": self.stage.broker, "dockerd": self.docker.daemon}[killed]
        component.restart()

    def _judge(self, seen: Seen) -> None:
        for card, milli in self.stage.held_milli().items():
            if milli > _WHOLE:
                seen.wrong.append(f"{milli} milli of card {card} are given away")
        self._wait(seen, "those that run hold a share, and nobody else", self._why_not_as_they_run)
        held = self.stage.held_milli()
        if left := _WHOLE - (min(held.values()) if len(held) == len(CARDS) else 0):
            words = ("run", "--rm", "--runtime", RUNTIME, "-e", f"PARTAGE_SHARE={left}", "tools", "true")
            done = self.docker.done(*words)
            if done.returncode:
                seen.wrong.append(f"of {held} {left} milli can't be had: {done.stderr.strip()[-300:]}")

    def _wait(self, seen: Seen, what: str, why_not: Callable[[], str | None]) -> None:
        try:
            until(what, why_not, _RIGHT_WITHIN_S)
        except NeverHappened as error:
            seen.wrong.append(str(error))

    def _why_not_as_they_run(self) -> str | None:
        running = self.docker.running() | self.podman.running()
        held = {str(each["id"]) for each in self.stage.held()}
        told = {str(each.pod.uid) for each in told_by(self.stage.machine).containers}
        if running == held == told:
            return None
        return f"run {_short(running)}, held {_short(held)}, with the broker {_short(told)}"

    def _why_held(self) -> str | None:
        return str(self.stage.held() or told_by(self.stage.machine).containers or "") or None


def _short(ids: set[str]) -> list[str]:
    return sorted(each[:6] for each in ids)


@contextmanager
def soaked() -> Generator[Soak]:
    programs = engine_programs(DEBIANS)
    visible = {*programs.folders, *engine_programs(PODMAN).folders, *VISIBLE}
    settings = {"runtimes": {RUNTIME: {"path": PROGRAM}}, "live-restore": True}
    flags = ("--look-every-s", "0.5", "--restart-hold-s", "1")
    with engine_machines(visible=visible, keep_logs=LOGS) as (machine,):
        install_program(machine, programs["runc"])
        with shares_on(machine, *CARDS, flags=flags) as stage, dockerd_on(machine, settings) as docker:
            soak = Soak(stage, docker, podman_on(machine, {RUNTIME: PROGRAM}))
            for engine in (soak.docker, soak.podman):
                engine.load({"tools": workloads()})
            yield soak


def main() -> int:
    asked = options("oci", seeds=20, steps=300, seed=1)
    done, refused, wrong = Counter[str](), Counter[str](), list[str]()
    with soaked() as soak:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            seen = soak.seed(seed, asked.steps)
            done += seen.steps
            refused += seen.refused
            wrong += [f"seed {seed}: {each}" for each in seen.wrong]
            say(f"seed {seed}: {dict(seen.steps)}, refused {dict(seen.refused)}, wrong {seen.wrong}")
    return ended("oci", wrong, seeds=asked.seeds, steps=asked.steps, done=done, refused=refused)


if __name__ == "__main__":
    raise SystemExit(main())
