"""What the child and its parent say: understood as it was meant, or refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml.facts import Trouble
from partage_gpu.nvml.wire import MAX_BYTES, Ended, NotUnderstood
from partage_isolation.audit.nvml_messages import (
    MOST_PROCESSES,
    WORDS,
    AskLimit,
    AskUse,
    CardRefused,
    Limited,
    Question,
    Ready,
    Told,
    Unseen,
    Used,
)

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
MESSAGES: st.SearchStrategy[Told] = st.one_of(
    st.builds(Ready, st.booleans()),
    st.builds(Limited, TEXTS, TEXTS, U32, TEXTS),
    st.builds(Used, TEXTS, U64, st.dictionaries(U32, st.none() | U64, max_size=20)),
    st.builds(Unseen, TEXTS, U64),
    st.builds(CardRefused, TEXTS, TEXTS),
    st.builds(Ended, st.builds(Trouble, kind=st.sampled_from(["failed", "no-library"]), sentence=TEXTS)),
)


@given(MESSAGES)
def test_what_is_said_is_understood(message: Told) -> None:
    assert WORDS.told(WORDS.encoded(message)) == message


@given(st.builds(AskUse, TEXTS) | st.builds(AskLimit, TEXTS, TEXTS, U64))
def test_what_is_asked_is_understood(asked: Question) -> None:
    assert WORDS.question(WORDS.encoded(asked)) == asked


def test_the_most_that_can_be_said_fits_into_a_packet() -> None:
    packet = WORDS.encoded(Used("GPU-1", 2**63, dict.fromkeys(range(2**22, 2**22 + MOST_PROCESSES), 2**63)))
    assert len(packet) <= MAX_BYTES
    answer = WORDS.told(packet)
    assert isinstance(answer, Used)
    assert len(answer.processes) == MOST_PROCESSES


@given(st.binary(max_size=200))
def test_any_bytes_are_understood_or_refused(packet: bytes) -> None:
    for read in (WORDS.told, WORDS.question):
        with contextlib.suppress(NotUnderstood):
            read(packet)


@given(MESSAGES, st.data())
def test_a_message_that_was_cut_or_has_more_is_refused(message: Told, data: st.DataObject) -> None:
    packet = WORDS.encoded(message)
    cut = data.draw(st.integers(0, len(packet) - 1))
    for wrong in (packet[:cut], packet + b"\0"):
        with pytest.raises(NotUnderstood):
            WORDS.told(wrong)


def test_a_question_is_no_answer_and_an_answer_no_question() -> None:
    with pytest.raises(NotUnderstood):
        WORDS.told(WORDS.encoded(AskUse("GPU-1")))
    with pytest.raises(NotUnderstood):
        WORDS.question(WORDS.encoded(Ready()))
