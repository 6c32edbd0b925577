"""A wait lasts longer on a busy machine, even one that became busy during it, and its failure lists all facts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.client.wait import found, patient, until
from rig.errors import NeverHappened
from rig.patience import MOST, Log, Reading, Strain, Wait, in_vain, patience_s, reading

CALM = Reading(at_s=0, load=0, short_s=0, stolen_s=0)
PARTS = st.floats(0, 1)


def a_wait(*readings: Reading) -> Wait:
    """A wait of 10 s with these readings of the machine's load, in order."""
    told: Iterator[Reading] = iter((CALM, *readings))
    return Wait(10, lambda: next(told))


@pytest.mark.parametrize(
    ("strain", "given_part"),
    [
        (Strain(load=0.3, short=0, stolen=0), 1),
        (Strain(load=2, short=0, stolen=0), 0.5),
        (Strain(load=0, short=0.5, stolen=0), 0.5),
        (Strain(load=0, short=0, stolen=0.5), 0.5),
        (Strain(load=2, short=0.2, stolen=0.2), 0.4),
        (Strain(load=90, short=1, stolen=1), 1 / MOST),
    ],
)
def test_load_waiting_and_stolen_time_all_make_a_second_count_less(strain: Strain, given_part: float) -> None:
    assert strain.given == pytest.approx(given_part)


@given(st.floats(0, 1000), PARTS, PARTS)
def test_a_second_never_counts_more_than_one_nor_less_than_a_quarter(load: float, short: float, stolen: float) -> None:
    assert 1 / MOST <= Strain(load, short, stolen).given <= 1


def test_a_wait_on_a_calm_machine_lasts_as_long_as_its_base() -> None:
    wait = a_wait(replace(CALM, at_s=9), replace(CALM, at_s=10))

    assert (wait.left_s(), wait.left_s()) == (1, 0)


def test_a_wait_that_began_calm_is_patient_once_the_machine_is_busy() -> None:
    calm, busy = replace(CALM, at_s=8), Reading(at_s=12, load=0, short_s=4, stolen_s=0)

    wait = a_wait(calm, busy)

    assert (wait.left_s(), wait.left_s()) == (2, 1)


def test_a_wait_that_began_in_a_crowd_is_no_longer_so_patient_once_it_is_gone() -> None:
    wait = a_wait(Reading(at_s=4, load=2, short_s=0, stolen_s=0), replace(CALM, at_s=6))

    assert (wait.left_s(), wait.left_s()) == (8, 6)


def test_no_wait_lasts_longer_than_four_times_its_base() -> None:
    assert a_wait(Reading(at_s=40, load=1000, short_s=40, stolen_s=40)).left_s() == 0


def test_the_machine_can_be_read_and_a_call_is_given_at_least_its_base() -> None:
    before = reading()
    after = reading()

    assert after.at_s >= before.at_s
    assert after.short_s >= before.short_s
    assert after.stolen_s >= before.stolen_s
    assert 10 <= patience_s(10) <= 10 * MOST


def test_a_wait_in_vain_says_what_was_awaited_what_was_seen_how_busy_it_was_and_who_said_what(tmp_path: Path) -> None:
    (tmp_path / "one.log").write_text("a\nb\n")
    wait = a_wait(Reading(at_s=20, load=2, short_s=10, stolen_s=1))
    wait.left_s()

    failed = in_vain("it runs", "it starts", wait, [Log("one", tmp_path / "one.log"), Log("two", tmp_path / "none")])

    strain = "load 2.0 a core, short of processors 50% of the time, 5% stolen"
    assert str(failed).splitlines() == [
        f"it runs: not within 20 s (10 s, and {strain}); last seen: it starts",
        f"--- one, {tmp_path}/one.log:",
        "a",
        "b",
        f"--- two, {tmp_path}/none:",
        "(it wrote nothing)",
    ]


def test_until_and_found_give_up_after_a_last_look_and_tell_what_it_saw() -> None:
    seen = iter(range(1, 1000))

    with pytest.raises(NeverHappened, match=r"it is done: not within .*; last seen: look \d+$"):
        until("it is done", lambda: f"look {next(seen)}", 0.01)
    with pytest.raises(NeverHappened, match=r"it is there: not within .*; last seen: \[\]$"):
        found("it is there", list, 0.01)

    assert next(seen) > 2
    assert found("it is there", lambda: "it") == "it"


async def test_what_is_awaited_with_patience_ends_in_vain_with_what_was_seen() -> None:
    with pytest.raises(NeverHappened, match=r"it comes: not within .*; last seen: nothing of it$"):
        async with patient("it comes", 0.01, seen=lambda: "nothing of it"):
            await asyncio.Event().wait()


async def test_patience_changes_nothing_of_what_ends_by_itself() -> None:
    async with patient("it ends"):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with patient("it ends"):
            raise TimeoutError
