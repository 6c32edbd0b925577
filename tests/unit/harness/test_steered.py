"""Programs controlled by tests: each line that they write is read."""

from __future__ import annotations

import pytest

from support.steered import Child


@pytest.mark.slow
def test_lines_that_come_together_are_heard_one_by_one_and_then_the_end() -> None:
    with Child(["sh", "-c", r"printf 'one\ntwo\n'; read -r word; printf 'rest'; exit 3"]) as child:
        assert [child.line(), child.line()] == ["one", "two"]
        child.say("go")
        assert child.line() == "rest"
        with pytest.raises(AssertionError, match="ended with 3"):
            child.line()
