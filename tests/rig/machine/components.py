"""One real program of the rig: starts it, waits for it, kills it, restarts it.

A component dies with the process that started it, by the kernel's parent-death signal, so that nothing is left when a
test run is killed. It has its own log, whose tail is part of every error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.errors import ComponentFailed
from rig.patience import PATIENCE_S, TAIL_LINES, Log, patience_s

_LOOK_EVERY_S: Final = 0.05
_STOP_WITHIN_S: Final = 20.0
_STOPPED: Final = frozenset("TtXZ")
"""States of a thread in /proc that runs nothing."""
MARK: Final = "PARTAGE_RIG"
"""The environment variable that marks a component as a rig's; its value is the rig's run folder."""

_FEW_COLLECTIONS: Final = {"GOGC": "400"}
"""Go programs collect garbage at five times the bytes in use instead of twice: starts need a quarter less CPU time, and
the API server 150 MiB more."""

WITH_ITS_PARENT: Final = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple[str, ...]
    log: Path
    run_folder: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    inside: tuple[str, ...] = ()
    """The command that enters its namespaces; it forks once, so the component is its child."""

    def environment(self) -> dict[str, str]:
        """Only these variables: the machine's proxy, kubeconfig and Go settings have no effect."""
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "HOME": str(self.run_folder), MARK: str(self.run_folder), **_FEW_COLLECTIONS, **self.env}


class Component:
    """A program and its current process. `why_not_ready` returns what is missing, or None once it serves."""

    def __init__(self, program: Program, why_not_ready: Callable[[], str | None]) -> None:
        self.program = program
        self._why_not_ready = why_not_ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The component's own PID in the host's PID namespace."""
        self.require_running()
        assert self._process is not None
        return self._child(self._process) if self.program.inside else self._process.pid

    def start(self) -> None:
        if self.is_running:
            raise ComponentFailed(f"{self.name} is already running")
        self.program.log.parent.mkdir(parents=True, exist_ok=True)
        with self.program.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*WITH_ITS_PARENT, *self.program.inside, *self.program.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.program.environment(),
                cwd="/",
                start_new_session=True,  # Ctrl-C on a terminal is for the rig, which stops things in order
            )

    def wait_ready(self, within_s: float = PATIENCE_S) -> None:
        def why_not() -> str | None:
            if why := self._why_not_ready():
                self.require_running()
            return why

        until(f"{self.name} is ready", why_not, within_s, logs=[self])

    def require_running(self) -> None:
        """Raise an error with the end of the log unless it runs."""
        if self._process is None:
            raise ComponentFailed(f"{self.name} was not started")
        if not self.is_running:
            raise self._failed(f"ended with status {self._process.returncode}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal; after SIGSTOP, return once no thread runs any more."""
        pid = self.pid
        os.kill(pid, number)
        if number == signal.SIGSTOP:
            until(f"{self.name} has stopped", lambda: _running_threads(pid), logs=[self])

    def kill(self) -> None:
        """Send SIGKILL and wait for the exit: simulates a crash."""
        if self.is_running:
            self._send_if_there(signal.SIGKILL)
        self._wait(_STOP_WITHIN_S)

    def stop(self, within_s: float = _STOP_WITHIN_S) -> None:
        """Send SIGTERM, then SIGKILL if it does not end; does nothing unless it runs."""
        if not self.is_running:
            return
        self._send_if_there(signal.SIGTERM)
        try:
            self._wait(within_s)
        except ComponentFailed:
            self.kill()

    def restart(self) -> None:
        self.kill()
        self.start()
        self.wait_ready()

    def tail(self, lines: int = TAIL_LINES) -> str:
        return Log(self.name, self.program.log).tail(lines)

    def _failed(self, what: str) -> ComponentFailed:
        return ComponentFailed(f"{self.name} {what}\n{self.tail()}")

    def _send_if_there(self, number: signal.Signals) -> None:
        try:
            self.send(number)
        except (ProcessLookupError, ComponentFailed):  # it ended meanwhile
            return

    def _wait(self, within_s: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(patience_s(within_s))
        except subprocess.TimeoutExpired as late:
            raise self._failed(f"did not end within {late.timeout:.0f} s") from late

    def _child(self, process: subprocess.Popen[bytes]) -> int:
        """The child of the entering program; there is a moment before the fork, and one after the child's end."""
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None:
            if found := children.read_text().split():
                return int(found[0])
            time.sleep(_LOOK_EVERY_S)
        raise self._failed(f"ended with status {process.returncode}")


@contextmanager
def serving(component: Component) -> Generator[Component]:
    """Run the component inside the context, and kill it at the end."""
    component.start()
    try:
        component.wait_ready()
        yield component
    finally:
        component.kill()


@contextmanager
def away(*components: Component) -> Generator[None]:
    """Kill them, and start them again at the end of the context."""
    for each in components:
        each.kill()
    try:
        yield
    finally:
        for each in components:
            each.restart()


@contextmanager
def stopped(component: Component) -> Generator[None]:
    """Freeze the component.

    The program that entered the node for it stops when its child does, and must be resumed as well.
    """
    pid = component.pid
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    component.send(signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        if parent != os.getpid():
            os.kill(parent, signal.SIGCONT)


def _running_threads(pid: int) -> str | None:
    """Which of its threads have not stopped; None if all have."""
    states = [_state(each) for each in Path(f"/proc/{pid}/task").iterdir()]
    return None if set(states) <= _STOPPED else f"states of its threads: {' '.join(states)}"


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # it has ended
        return "X"
