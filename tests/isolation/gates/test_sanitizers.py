"""The library's own memory errors and races, while everything is launched at once and time slices come and go.

The library and the program are built with a sanitizer, the driver is not: every report is about our code.
"""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from isolation.gates.stage import Place, gated
from isolation.memory.stage import objects_in
from partage_isolation.wire.packets import What
from partage_simgpu.build import READY_MADE
from support.lender import Granter
from support.sanitized import OPTIONS, SANITIZERS, preload, programs, runtimes, small_driver

pytestmark = pytest.mark.slow

THREADS: Final = "6"
TURNS: Final = "1000"
LEASE_S: Final = 0.01


def next_epoch(broker: Granter, turn: int) -> int:
    """Mostly time slices; now and then the card is revoked from its sole user, or freed and then revoked."""
    if turn % 7 == 0:
        broker.sole()
    elif turn % 11 == 0:
        broker.free()
    else:
        return broker.timeslice(seconds=LEASE_S)
    return broker.close()


def leases_until_it_ends(place: Place, process: subprocess.Popen[str]) -> int:
    """The number of time slices, each begun when the previous one was drained."""
    broker, turns = place.broker, 0

    def is_over(epoch: int) -> bool:
        return process.poll() is not None or bool(broker.heard_of(What.DRAINED, epoch))

    while process.poll() is None:
        turns += 1
        epoch = next_epoch(broker, turns)
        broker.wait(partial(is_over, epoch), f"epoch {epoch} is drained")
        broker.timeslices.clear()
    return turns


@pytest.mark.parametrize("sanitizer", list(SANITIZERS))
def test_a_sanitizer_has_nothing_to_report(tmp_path: Path, sanitizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READY_MADE, str(small_driver()))
    program = programs(sanitizer) / "gating"
    with gated(tmp_path, library=preload(sanitizer)) as place:
        first = f"{runtimes(sanitizer)}:{objects_in(place.folder)}"
        environment = {**place.node.environment, **OPTIONS, "LD_PRELOAD": first}
        argv = [str(program), THREADS, TURNS, "1"]
        with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as process:
            turns = leases_until_it_ends(place, process)
            assert process.stderr is not None
            assert (process.returncode, process.stderr.read()) == (0, "")
    assert turns > 3
