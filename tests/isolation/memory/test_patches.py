"""Libraries that patch functions of the driver, as UCX does, find ours, and limits hold behind them."""

from __future__ import annotations

import json
import subprocess

import pytest

from bench.isolation.place import a_place
from bench.isolation.programs import programs
from support.simgpu import card

pytestmark = pytest.mark.slow
CONTEXT_MIB, LIMIT_MIB, PIECE_MIB = 16, 256, 16


def test_who_patches_what_he_finds_sees_each_call_and_gets_no_more() -> None:
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as place:
        environment = dict(place.container(memory_mib=LIMIT_MIB).environment)
        said = subprocess.check_output([programs() / "patching", str(PIECE_MIB)], env=environment)
    most = (LIMIT_MIB - CONTEXT_MIB) // PIECE_MIB
    assert json.loads(said) == {"pieces": [most, most], "taken": most + 1, "given": most}
