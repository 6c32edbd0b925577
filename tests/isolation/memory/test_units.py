"""The library's accounting with a driver and a broker made of a few arrays, with sanitizers: threads on every path."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.builds import ROOT, made
from support.extent import drawn

pytestmark = pytest.mark.slow
UNITS = ROOT / "tests/preload/units"
MIB = 1 << 20


@pytest.fixture(scope="module", params=["", "address,undefined", "thread"])
def race(request: pytest.FixtureRequest) -> Path:
    return made(UNITS, f"SANITIZE={request.param}") / "race"


@pytest.mark.parametrize("limit_mib", drawn("isolation/memory: limits", [40, 150, 4000], 1))
@pytest.mark.parametrize("fails_each", [0, 11], ids=["driver works", "driver fails"])
def test_never_more_than_the_limit_and_nothing_left_at_the_end(race: Path, limit_mib: int, fails_each: int) -> None:
    threads, turns, seed = 12, 1000, limit_mib + fails_each
    command = [str(race), *map(str, (threads, turns, limit_mib, fails_each, seed))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["used"] == told["held"] == told["wrong"] == 0
    assert 0 < told["peak"] <= limit_mib * MIB
    assert told["taken"] > threads
