"""The daemons of a node: which ones run, their flags and variables, and whether they work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from partage_cli.doctor.daemons import condition_of
from partage_cli.doctor.local_node import Unseen, names_in, status_of, text_of
from partage_cli.doctor.runtimes import runtime_at
from partage_cli.installation.errors import StepFailed
from partage_cli.installation.host import Host
from partage_cli.installation.programs import ENVIRONMENT, SHOWN, run
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_plugins.api.places import BROKER_ALIVE, CRISHIM_CONDITION, KUBELET_SPOKE
from partage_plugins.errors import Refused

_CHECK_WITHIN_S: Final = 120.0
_FRESH_S: Final = 20.0
_AGAIN_S: Final = 0.25
_CRISHIM_SOCKET: Final = "run/partage/crishim.sock"
_KEPT_VARIABLES: Final = ("PARTAGE_", "KUBECONFIG")


@dataclass(frozen=True)
class Daemon:
    name: str
    sign: str = ""
    """A file that it touches every few seconds."""

    @property
    def program(self) -> str:
        return f"partage-{self.name}"

    @property
    def unit(self) -> str:
        return f"{self.program}.service"


BROKER: Final = Daemon("broker", BROKER_ALIVE)
CRISHIM: Final = Daemon("crishim", CRISHIM_CONDITION)
ADVERTISER: Final = Daemon("advertiser")
DAEMONS: Final = (BROKER, CRISHIM, ADVERTISER)
"""In restart order: crishim calls the broker."""


def running(host: Host) -> tuple[Daemon, ...]:
    return tuple(each for each in DAEMONS if host.services.is_active(each.unit))


def started_with(host: Host, daemon: Daemon) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The flags and variables of the running daemon; empty if none runs."""
    for process in _processes(host.path("proc")):
        words = text_of(process / "cmdline")
        argv = [] if isinstance(words, Unseen) else words.rstrip("\0").split("\0")
        at = next((place for place, word in enumerate(argv[:3]) if _is_program(word, daemon)), None)
        environment = text_of(process / "environ")
        if at is not None and not isinstance(environment, Unseen):
            pairs = (each.partition("=") for each in environment.split("\0"))
            said = {name: value for name, _, value in pairs if name.startswith(_KEPT_VARIABLES)}
            return tuple(argv[at + 1 :]), said
    return (), {}


def by_unit(units: Sequence[str]) -> tuple[Daemon, ...]:
    return tuple(each for each in DAEMONS if each.unit in units)


def asked(host: Host, tree: Path, program: str, *words: str, variables: Mapping[str, str] | None = None) -> str:
    """The output of a program of a tree; raises `StepFailed` with its error."""
    argv = (str(tree / "bin" / program), "--root", str(host.root), *words)
    environment = {**ENVIRONMENT, **(variables or {})}
    done = run(*argv, within_s=_CHECK_WITHIN_S, environment=environment, folder="/")
    if done.returncode:
        said = "; ".join(done.stderr.strip().splitlines())[-SHOWN:]
        raise StepFailed(f"`{' '.join(argv)}` ended with {done.returncode}: {said or 'it says nothing'}")
    return done.stdout


def refusing(host: Host) -> frozenset[str]:
    """The causes for which crishim honours no allocation."""
    condition = condition_of(host.root)
    return frozenset(fault.cause for fault in condition.faults if fault.refuses) if condition else frozenset()


def kubelet_speaks(host: Host) -> bool:
    return time.time() - _touched_s(host.root / KUBELET_SPOKE) <= _FRESH_S


@dataclass(frozen=True)
class Proof:
    """The test of restarted daemons: they run, show signs of life and answer."""

    host: Host
    daemons: Sequence[Daemon]
    tolerated: frozenset[str]
    """Causes for which crishim honoured no allocation before."""
    with_kubelet: bool
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait(self, since_s: float, within_s: float, *, give_up: Callable[[], str | None] = lambda: None) -> None:
        """Raises `StepFailed` with what is still missing since that wall-clock time."""
        until = self.clock() + within_s
        while why := self.why_not(since_s):
            why = give_up() or (why if self.clock() >= until else None)
            if why:
                raise StepFailed(why)
            self.sleep(_AGAIN_S)

    def why_not(self, since_s: float) -> str | None:
        """The first condition that does not hold yet."""
        return next(filter(None, self._missing(since_s)), None)

    def _missing(self, since_s: float) -> Iterator[str | None]:
        for each in self.daemons:
            if not self.host.services.is_active(each.unit):
                yield f"{each.program} does not run; see `journalctl -u {each.unit}`"
            if each.sign and _touched_s(self.host.root / each.sign) <= since_s:
                yield f"{each.program} shows no sign of life"
        if BROKER in self.daemons:
            yield self._broker()
        if CRISHIM in self.daemons:
            yield from self._crishim()
            if self.with_kubelet and _touched_s(self.host.root / KUBELET_SPOKE) <= since_s:
                yield "kubelet has not spoken through partage-crishim since it was started"

    def _broker(self) -> str | None:
        try:
            BrokerClient(self.host.root).tell()
        except (ControlError, Refused) as error:
            return str(error)
        return None

    def _crishim(self) -> Iterator[str | None]:
        answer = runtime_at(self.host.root / _CRISHIM_SOCKET)
        yield f"partage-crishim does not answer: {answer.why}" if isinstance(answer, Unseen) else None
        if new := refusing(self.host) - self.tolerated:
            yield f"partage-crishim honours no allocation: {', '.join(sorted(new))}; `partage doctor` says more"


def _is_program(word: str, daemon: Daemon) -> bool:
    return word.startswith("/") and PurePath(word).name == daemon.program


def _processes(folder: Path) -> Iterator[Path]:
    numbers = names_in(folder)
    for name in () if isinstance(numbers, Unseen) else numbers:
        if name.isdecimal() and int(name) != os.getpid():
            yield folder / name


def _touched_s(path: Path) -> float:
    found = status_of(path)
    return float("-inf") if isinstance(found, Unseen) else found.st_mtime
