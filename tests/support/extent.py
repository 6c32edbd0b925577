"""How much a run tests: `make test-all` every step of each test, other runs a few that depend on the commit.

Each commit draws other steps, and a run can be repeated:

    PARTAGE_TEST_DRAW=<tree> tools/test JOB
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

EXTENT: Final = "PARTAGE_TEST_EXTENT"
DRAW: Final = "PARTAGE_TEST_DRAW"
_ROOT: Final = Path(__file__).parents[2]
_WITHOUT_GIT: Final = "no-tree"

T = TypeVar("T")
_draws: dict[str, None] = {}


def is_all() -> bool:
    return os.environ.get(EXTENT) == "all"


def examples(number: int) -> int:
    """Number of examples for a property: all in `make test-all`, a third before a push, a tenth in `check`."""
    is_quick = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
    return number if is_all() else max(1, number // (10 if is_quick else 3))


def drawn(name: str, steps: Sequence[T], count: int) -> tuple[T, ...]:
    """All steps in `make test-all`, otherwise `count` of them, in their order.

    The name is that of the test's job, a colon and what the steps are: `real/installation: kills of a switch`.
    """
    if is_all():
        return tuple(steps)
    tree = _tree()
    ranked = sorted(range(len(steps)), key=lambda index: sha256(f"{tree} {name} {index}".encode()).digest())
    chosen = tuple(steps[index] for index in sorted(ranked[:count]))
    _tell(name, f"{len(chosen)} of {len(steps)}, {', '.join(map(str, chosen))}", tree)
    return chosen


def draws() -> tuple[str, ...]:
    """A line for each draw in this process, with how to repeat it."""
    return tuple(_draws)


def _tell(name: str, chosen: str, tree: str) -> None:
    job, _, what = name.partition(": ")
    line = f"drawn for {what}: {chosen}; to repeat it: {DRAW}={tree} tools/test '{job}'"
    _draws[line] = None
    print(line)  # noqa: T201  pytest shows it with a failure


def _tree() -> str:
    return os.environ.get(DRAW) or _tree_of(_ROOT)


@cache
def _tree_of(checkout: Path) -> str:
    """The tree hash of HEAD."""
    argv = ["git", "-C", str(checkout), "rev-parse", "HEAD^{tree}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return _WITHOUT_GIT
    return done.stdout.strip() if done.returncode == 0 else _WITHOUT_GIT
