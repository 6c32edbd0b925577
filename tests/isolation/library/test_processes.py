"""The library works in unusual processes: with threads, forks, signals, closing, and next to no permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from isolation.library.stage import VERSION, Stage
from support.lender import Lender
from support.simgpu import NODE, card_uuid, simulated_node

pytestmark = pytest.mark.slow  # compiles


def test_a_process_that_uses_no_cuda_opens_nothing(stage: Stage) -> None:
    without = stage.lines("quiet", LD_PRELOAD="")
    assert stage.lines("quiet") == without
    assert without[0].endswith(" 0")


def test_a_process_that_may_make_no_system_call_runs_to_its_end(stage: Stage) -> None:
    assert stage.lines("sealed") == ["0"]


def test_after_the_first_call_none_is_needed_to_reach_the_driver(stage: Stage) -> None:
    assert stage.lines("sealed", "after") == [str(VERSION)]


@pytest.mark.parametrize("first", ["parent", None])
def test_a_forked_child_and_what_it_executes_reach_the_driver(stage: Stage, first: str | None) -> None:
    said = [f"child {VERSION}", f"executed {VERSION}", f"parent {VERSION}"]
    assert stage.lines("forks", *([first] if first else [])) == said


def test_closing_it_changes_nothing(stage: Stage) -> None:
    assert stage.lines("closes") == [str(VERSION)]


def test_two_hundred_threads_make_the_first_call_at_once(stage: Stage) -> None:
    for _ in range(5):
        assert stage.lines("threads", stage.programs / "early.so") == [str(VERSION)]


def test_signals_do_not_disturb_the_first_call(stage: Stage) -> None:
    assert stage.lines("signals") == ["0"]


def test_without_a_broker_the_driver_does_not_start_and_the_process_goes_on(stage: Stage) -> None:
    """A container whose limits cannot be known has no card, rather than all of it."""
    said = stage.lines("without")
    assert said[:2] == ["cuInit 3", "errno 77"]
    assert len(said) == 6


# ---- With a broker and a card ----------------------------------------------------------------------------------------


LIMIT_MIB: Final = 2048


def test_it_makes_no_system_call_that_the_page_does_not_list(stage: Stage, tmp_path: Path) -> None:
    granted = {card_uuid(NODE, 0): LIMIT_MIB << 20}
    with simulated_node(tmp_path) as node, Lender(stage.place / "broker", granted):
        said = stage.lines("metered", LD_LIBRARY_PATH=node.environment["LD_LIBRARY_PATH"])
    assert said == [f"0 {LIMIT_MIB}"]
