"""Runs a user's program in a container, and if asked also directly before: `both|contained MODULE WORD...`."""

from __future__ import annotations

import sys
import time
from typing import Any

from real_card.ground import program, user_environment
from real_card.programs.answer import answer
from real_card.stages.place import a_place, told

AUDITED_S = 1.2
"""Long enough for audit rounds to see what a program left."""


def contained(module: str, *words: str) -> dict[str, Any]:
    argv = program(module, *words)
    with a_place() as place:
        container = place.container()
        found = told(argv, container.environment)
        if "absent" in found:
            return found
        time.sleep(AUDITED_S)
        card = container.held
        return {
            "contained": found,
            "limit": card.limit_bytes,
            "refused": card.refused,
            "findings": list(place.findings),
        }


def both(module: str, *words: str) -> dict[str, Any]:
    bare = told(program(module, *words), user_environment())
    also = bare.pop("also", {})
    return {"also": also, **(bare if "absent" in bare else {"bare": bare, **contained(module, *words)})}


if __name__ == "__main__":
    sys.exit(answer({"both": both, "contained": contained}))
