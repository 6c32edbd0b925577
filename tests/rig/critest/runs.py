"""Runs critest against one CRI socket and reads what it reports.

critest starts where its runtime is, by `inside`: its specs listen on ports, look at mounts and make shared memory, all
of which the runtime must see. The work folder must be at the same path in there. Two segments of shared memory stay
behind in the runtime's IPC namespace after each run: critest removes them nowhere.

First a dry run says which specs there are, so one that silently did not run is noticed. The seed decides the order of
all specs, across their groups: two runs with one seed do the same, two with different seeds should agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.critest.results import Run, every_spec, started
from rig.errors import ComponentFailed
from rig.machine.components import Component, Program

Say = Callable[[str], None]
_DRY_WITHIN_S: Final = 60.0
_HANGS_AFTER: Final = "90s"
"""From when on critest writes to its log where it stands."""


@dataclass(frozen=True)
class Critest:
    """The program, the socket of the runtime as critest sees it, and how to get to where the runtime is."""

    program: Path
    socket: str
    folder: Path
    inside: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """All that it says, of every run in this folder."""
        return self.folder / "critest.log"


def run(critest: Critest, *, seed: int, timeout_s: float = 900.0, say: Say) -> Run:
    """The results of one run. Raises where critest itself breaks; a failing spec is a result."""
    (critest.folder / "tmp").mkdir(parents=True, exist_ok=True)
    listed = _reported(critest, ["--ginkgo.dry-run"], _DRY_WITHIN_S)
    known, selected = every_spec(listed), frozenset(started(listed))
    say(f"critest: {len(selected)} of {len(known)} specs, seed {seed}; its log is {critest.log}")
    begun = time.monotonic()
    order = ["--ginkgo.randomize-all", f"--ginkgo.seed={seed}"]
    flags = [*order, "--ginkgo.v", f"--ginkgo.poll-progress-after={_HANGS_AFTER}"]
    report = _reported(critest, flags, timeout_s)
    return Run(seed, known, selected, started(report), time.monotonic() - begun)


def _reported(critest: Critest, flags: list[str], timeout_s: float) -> bytes:
    """Runs it to its end and gives its report. It exits with 1 if a spec failed, so its status tells nothing."""
    report = critest.folder / "report.json"
    report.unlink(missing_ok=True)
    component = Component(_program(critest, [*flags, f"--ginkgo.json-report={report}"]), lambda: None)
    component.start()
    try:
        until("critest ends", lambda: "it runs" if component.is_running else None, timeout_s, logs=[component])
    finally:
        component.kill()
    if not report.exists():
        raise ComponentFailed(f"critest ended without a report\n{component.tail()}")
    return report.read_bytes()


def _program(critest: Critest, flags: list[str]) -> Program:
    """Both endpoints are given, so that no crictl.yaml of the machine has a say."""
    endpoints = [f"--{which}-endpoint=unix://{critest.socket}" for which in ("runtime", "image")]
    return Program(
        name="critest",
        argv=(str(critest.program), *endpoints, "--ginkgo.no-color", *flags),
        log=critest.log,
        run_folder=critest.folder,
        env={"TMPDIR": str(critest.folder / "tmp")},
        inside=critest.inside,
    )
