"""With a broker and a card: a metered program needs no further system calls."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from isolation.library.stage import Stage
from support.lender import Lender
from support.simgpu import NODE, card_uuid, simulated_node

pytestmark = pytest.mark.slow

LIMIT_MIB: Final = 2048


def test_it_makes_no_system_call_that_the_page_does_not_list(stage: Stage, tmp_path: Path) -> None:
    granted = {card_uuid(NODE, 0): LIMIT_MIB << 20}
    with simulated_node(tmp_path) as node, Lender(stage.place / "broker", granted):
        said = stage.lines("metered", LD_LIBRARY_PATH=node.environment["LD_LIBRARY_PATH"])
    assert said == [f"0 {LIMIT_MIB}"]
