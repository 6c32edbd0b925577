"""What the child and its parent say: understood as it was meant, or refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.audit import nvml_messages as speech
from partage_isolation.audit.nvml_messages import (
    AskLimit,
    AskUse,
    CardRefused,
    Ended,
    Limited,
    NotUnderstood,
    Ready,
    Told,
    Unseen,
    Used,
    encoded,
    told,
)

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
KNOWN = st.integers(0, 2**64 - 2)
"""The number after them means that the driver does not say, for us as for it."""
CARDS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=60)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
MESSAGES: st.SearchStrategy[Told] = st.one_of(
    st.builds(Ready, st.booleans()),
    st.builds(Limited, CARDS, CARDS, U32, WORDS),
    st.builds(Used, CARDS, U64, st.dictionaries(U32, st.none() | KNOWN, max_size=20)),
    st.builds(Unseen, CARDS, U64),
    st.builds(CardRefused, CARDS, WORDS),
    st.builds(Ended, WORDS, st.booleans()),
)


@given(MESSAGES)
def test_what_is_said_is_understood(message: Told) -> None:
    assert told(encoded(message)) == message


@given(st.builds(AskUse, CARDS) | st.builds(AskLimit, CARDS, CARDS, U64))
def test_what_is_asked_is_understood(asked: speech.Question) -> None:
    assert speech.question(speech.asked(asked)) == asked


def test_the_most_that_can_be_said_fits_into_a_packet() -> None:
    packet = encoded(Used("GPU-1", 2**63, dict.fromkeys(range(speech.MOST_PROCESSES), 2**63)))
    assert len(packet) <= speech.MAX_BYTES
    answer = told(packet)
    assert isinstance(answer, Used)
    assert len(answer.processes) == speech.MOST_PROCESSES


def test_words_without_end_are_cut() -> None:
    assert len(encoded(Ended("x" * 1_000_000, has_library=True))) < 2000


@given(st.binary(max_size=200))
def test_any_bytes_are_understood_or_refused(packet: bytes) -> None:
    for read in (told, speech.question):
        with contextlib.suppress(NotUnderstood):
            read(packet)


@given(MESSAGES, st.data())
def test_a_message_that_was_cut_or_has_more_is_refused(message: Told, data: st.DataObject) -> None:
    packet = encoded(message)
    cut = data.draw(st.integers(0, len(packet) - 1))
    for wrong in (packet[:cut], packet + b"\0"):
        with pytest.raises(NotUnderstood):
            told(wrong)


def test_a_process_that_is_named_twice_is_refused() -> None:
    packet = encoded(Used("", 1, {7: 8, 9: 8}))
    with pytest.raises(NotUnderstood, match="twice"):
        told(packet.replace(b"\7\0\0\0", b"\t\0\0\0"))


def test_a_question_is_no_answer_and_an_answer_no_question() -> None:
    with pytest.raises(NotUnderstood):
        told(speech.asked(AskUse("GPU-1")))
    with pytest.raises(NotUnderstood):
        speech.question(encoded(Ready()))
