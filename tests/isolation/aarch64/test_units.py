"""The library's accounting with a driver and a broker made of a few arrays, with aarch64 threads on every path."""

from __future__ import annotations

import json
import subprocess

import pytest

from isolation.aarch64.emulator import Emulator, made

pytestmark = pytest.mark.slow

LIMIT_MIB = 40


@pytest.mark.parametrize("fails_each", [0, 11], ids=["driver works", "driver fails"])
def test_never_more_than_the_limit_and_nothing_left_at_the_end(machine: Emulator, fails_each: int) -> None:
    race = made("tests/preload/units") / "race"
    threads, turns, seed = 4, 300, 1
    words, env = machine.started([race, *map(str, (threads, turns, LIMIT_MIB, fails_each, seed))], {})
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["used"] == told["held"] == told["wrong"] == 0
    assert told["taken"] > threads
