"""A step of a build ends with its builder; one that must not be killed is asked, and waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rig.programs.steps import Step, Task, run

# Says that it has begun, and when it is asked to end, first finishes what it does.
CAREFUL = """trap 'sleep 0.3; touch finished; exit 0' INT
touch begun
while :; do sleep 0.05; done
"""


class Impatient:
    """Someone who presses Ctrl-C once the step has begun."""

    def __init__(self, folder: Path) -> None:
        self._begun = folder / "begun"

    def line(self, text: str) -> None:
        raise AssertionError(text)

    def status(self, text: str) -> None:
        assert "so far (sh -c)" in text
        if self._begun.exists():
            raise KeyboardInterrupt


@pytest.mark.parametrize("is_bound", [True, False])
def test_only_a_step_that_may_be_killed_is(tmp_path: Path, *, is_bound: bool) -> None:
    step = Step(("sh", "-c", CAREFUL), tmp_path, os.environ, is_bound=is_bound)
    with pytest.raises(KeyboardInterrupt):
        run(Task("it", tmp_path / "log", Impatient(tmp_path)), step)
    assert (tmp_path / "finished").exists() is not is_bound
