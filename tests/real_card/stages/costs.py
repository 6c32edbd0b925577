"""A launch's cost through the library above the driver's own: free, and while another container wants the card."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any, Final

from real_card.ground import built_programs, driver_past
from real_card.programs.answer import answer
from real_card.stages.floods import Flood, flooding
from real_card.stages.place import Place, a_place

ROUNDS: Final = 1000
LEASED_ROUNDS: Final = 300


def _costs(place: Place, kind: str, rounds: int) -> dict[str, Any]:
    container = place.container(memory=place.memory // 4, share=500)
    argv = [str(built_programs() / "costs"), kind, str(driver_past()), str(rounds)]
    done = subprocess.run(argv, env=container.environment, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    added = [called - driver for driver, called in zip(told["driver"], told["called"], strict=True)]
    return {
        "interposed": told["interposed"],
        "driver_ns": round(statistics.median(told["driver"]), 1),
        "added_ns": round(statistics.median(added), 1),
    }


def free(kind: str) -> dict[str, Any]:
    with a_place() as place:
        return _costs(place, kind, ROUNDS)


def leased(kind: str) -> dict[str, Any]:
    """The other container floods the card with kernels of 1 ms."""
    with a_place() as place, flooding(place, Flood(500, 1000)):
        return _costs(place, kind, LEASED_ROUNDS)


if __name__ == "__main__":
    sys.exit(answer({"free": free, "leased": leased}))
