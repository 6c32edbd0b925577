"""The meaning of the driver's errors for a card's health."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.discovery.causes import HARMLESS, LONGEST_REASON, Gravity, cause_of
from partage_plugins.api import HealthCause

NUMBERS = st.integers(0, 2**32)


@pytest.mark.parametrize("number", [13, 31, 43, 45, 68, 109])
def test_a_fault_of_the_program_says_nothing_about_the_card(number: int) -> None:
    assert cause_of(number) is None


@pytest.mark.parametrize(
    ("number", "gravity", "code", "words"),
    [
        (48, Gravity.RESET, HealthCause.XID_RESET, "XID 48: double bit ECC error; drain the node and reset the card"),
        (
            79,
            Gravity.FELL_OFF,
            HealthCause.FELL_OFF,
            "XID 79: the card fell off the bus; drain the node and restart it",
        ),
        (94, Gravity.PASSING, HealthCause.XID, "XID 94: an error of memory was contained to one program"),
        (4711, Gravity.PASSING, HealthCause.XID, "XID 4711: an error of the card; the kernel's log says more"),
    ],
)
def test_other_errors_are_told_in_words_that_say_what_to_do(
    number: int, gravity: Gravity, code: HealthCause, words: str
) -> None:
    cause = cause_of(number)
    assert cause is not None
    assert (cause.gravity, cause.code, cause.words) == (gravity, code, words)


def test_more_numbers_can_be_set_to_be_harmless() -> None:
    assert cause_of(94, frozenset((94,))) is None
    assert cause_of(95, frozenset((94,))) is not None


@given(NUMBERS)
def test_any_number_has_one_short_printable_reason_or_none(number: int) -> None:
    cause = cause_of(number)
    assert (cause is None) == (number in HARMLESS)
    if cause is not None:
        assert cause.words.startswith(f"XID {number}: ")
        assert cause.words.isprintable()
        assert len(cause.words) <= LONGEST_REASON
