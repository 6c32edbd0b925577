"""A machine of the rig without Kubernetes, on which `partage up` runs with simulated cards.

with machine_up() as stage:
    stage.partage("ps")
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.lone import lone_machines
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, inside
from rig.patience import patience_s
from support.bytecode import BYTECODE
from support.simgpu import built as built_simgpu

UP: Final = "try:    partage docker install"
"""Printed by `partage up` once containers can have a share."""
VISIBLE: Final = (Path(sys.prefix), built_simgpu())
"""Paths that the machine must be able to see."""
PARTAGE: Final = (sys.executable, "-P", "-m", "partage_cli")


def up_env() -> dict[str, str]:
    return {"PARTAGE_SIMGPU": str(built_simgpu()), **BYTECODE}


@dataclass(frozen=True)
class MachineStage:
    machine: Machine
    up: Component
    """`partage up` in the foreground, which tests start, stop and kill."""

    def partage(self, *words: str, timeout_s: float = 60.0) -> str:
        """Output of the command; raises with its output if it fails."""
        return self.machine.run(*PARTAGE, *words, timeout_s=timeout_s)

    def partage_done(self, *words: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """As `partage`, without checking the exit code."""
        argv = (*self.machine.way_in, *PARTAGE, *words)
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patience_s(timeout_s), cwd="/")

    @property
    def said(self) -> str:
        """Output of `partage up` and of everything that it started."""
        return self.up.program.log.read_text(errors="replace")

    def start(self) -> None:
        """Start it again; returns once containers can have a share."""
        before = self.said.count(UP)
        self.up.start()
        self.wait_up(before + 1)

    def wait_up(self, times: int = 1) -> None:
        def why_not() -> str | None:
            self.up.require_running()
            return None if self.said.count(UP) >= times else "it does not say so"

        until("partage up is done", why_not)


@contextmanager
def bare_machine(
    words: Sequence[str] = ("--simulated", "h100"), *, keep_logs: Path | None = None
) -> Generator[MachineStage]:
    """A machine with `partage up` and these options, not started yet."""
    with lone_machines("lone", visible=VISIBLE, keep_logs=keep_logs) as lone:
        (machine,) = lone.machines
        with ready_to_go_up(machine, words) as stage:
            yield stage


@contextmanager
def ready_to_go_up(
    machine: Machine,
    words: Sequence[str],
    *,
    command: Sequence[str] = PARTAGE,
    env: Mapping[str, str] | None = None,
) -> Generator[MachineStage]:
    """As `bare_machine`, on an existing machine that can see what `up` needs; `partage` is that command."""
    argv = (*command, "up", "--foreground", *words)
    up = inside(machine, Daemon("up", argv, lambda _: None, env or up_env()))
    up.program.log.parent.mkdir(parents=True, exist_ok=True)
    up.program.log.touch()
    try:
        yield MachineStage(machine, up)
    finally:
        up.kill()


@contextmanager
def machine_up(cards: int = 1, *, keep_logs: Path | None = None) -> Generator[MachineStage]:
    """A machine whose containers can have shares of this number of simulated H100."""
    with bare_machine(("--simulated", "h100", "--cards", str(cards)), keep_logs=keep_logs) as stage:
        stage.start()
        yield stage
