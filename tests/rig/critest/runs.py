"""Runs critest against one CRI socket and reads its report.

`inside` starts critest in the runtime's namespaces: its specs listen on ports, inspect mounts and create shared memory,
all of which the runtime must see. The work folder must have the same path in there. Each run leaves two segments of
shared memory in the runtime's IPC namespace: critest never removes them.

A dry run first lists the specs, so that one that silently did not run is noticed. The seed determines the order of all
specs, across their groups: two runs with one seed do the same, two with different seeds should agree.
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
"""When critest starts to log the position of a spec that hangs."""


@dataclass(frozen=True)
class Critest:
    """The program, the runtime's socket as critest sees it, and the way into the runtime's namespaces."""

    program: Path
    socket: str
    folder: Path
    inside: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """The output of all runs in this folder."""
        return self.folder / "critest.log"


def run(critest: Critest, *, seed: int, timeout_s: float = 900.0, say: Say) -> Run:
    """The results of one run. Raises if critest itself breaks; a failing spec is a result."""
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
    """Run it to its end and return its report. Its exit status is 1 if a spec failed, so it means nothing."""
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
    """Both endpoints are given, so that the machine's crictl.yaml has no effect."""
    endpoints = [f"--{which}-endpoint=unix://{critest.socket}" for which in ("runtime", "image")]
    return Program(
        name="critest",
        argv=(str(critest.program), *endpoints, "--ginkgo.no-color", *flags),
        log=critest.log,
        run_folder=critest.folder,
        env={"TMPDIR": str(critest.folder / "tmp")},
        inside=critest.inside,
    )
