"""Questions and answers cross the socket as one line, whatever stands in them; what is neither is said to be so."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.wire.messages import (
    END,
    MAX_QUESTION_BYTES,
    Answer,
    Enter,
    Entered,
    LimitsSet,
    No,
    Prepare,
    Question,
    Release,
    Released,
    SetLimits,
    Tell,
    Told,
    answer_line,
    question_line,
    read_answer,
    read_question,
)
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import CardId, ContainerKey, ContainerName, GpuGrant
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES, MAX_CARDS
from support.broker import CARD, container, held, pod, prepared, told

KEY = ContainerKey("0" * 32)


def prepare(cards: int = 1) -> Prepare:
    grants = tuple(
        GpuGrant(card=CardId(f"MIG-{'5a1e3c8e' * 4}-{index}"), share_milli=0, limit_milli=1000, memory_bytes=1 << 62)
        for index in range(cards)
    )
    return Prepare(key=KEY, pod=pod(), container=ContainerName("main"), gen=1, grants=grants)


@pytest.mark.parametrize(
    "question",
    [
        prepare(),
        SetLimits(key=KEY, card=CARD, memory_bytes=None),
        Release(key=KEY),
        Enter(key=KEY, container="1a" * 32, pid=7),
        Tell(),
    ],
)
def test_a_question_is_one_line_and_is_read_as_it_was(question: Question) -> None:
    line = question_line(question)
    assert line.count(END) == 1
    assert line.endswith(END)
    assert read_question(line) == question


@given(st.text(min_size=1, max_size=100))
def test_a_sentence_with_any_text_stays_one_line(sentence: str) -> None:
    line = answer_line(No(why=sentence))
    assert line.index(END) == len(line) - 1
    assert read_answer(line) == No(why=sentence)


def test_answers_are_read_as_they_were() -> None:
    answers: list[Answer] = [
        prepared(prepare()),
        LimitsSet(memory_bytes=1, charged_bytes=2),
        Released(is_over=True),
        Entered(),
        told(container(pod(), held())),
    ]
    assert [read_answer(answer_line(answer)) for answer in answers] == answers


def test_the_largest_question_fits() -> None:
    assert MAX_QUESTION_BYTES >= MAX_ANNOTATION_BYTES >= len(question_line(prepare(MAX_CARDS)))


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        (b"", "JSON"),
        (b"tell\n", "JSON"),
        (b"{}\n", "an object with the field `ask`"),
        (b'{"ask":"stop"}\n', "Invalid value 'stop'"),
        (b'{"ask":"prepare","key":"main"}\n', "32 lower-case hex digits"),
        (b'{"ask":"set-limits","key":"%b","card":"GPU-0","memory_bytes":-1}\n' % KEY.encode(), "an integer from 0"),
        (b'{"ask":"set-limits","key":"%b","card":"all cards","memory_bytes":1}\n' % KEY.encode(), "a card id"),
    ],
)
def test_what_is_no_question_is_refused_with_what_is_allowed(line: bytes, allowed: str) -> None:
    with pytest.raises(DecodeError, match=allowed):
        read_question(line)


@given(
    st.one_of(st.binary(max_size=200), st.recursive(st.none() | st.text(max_size=9), st.lists).map(msgspec.json.encode))
)
def test_any_bytes_are_a_question_or_one_error(line: bytes) -> None:
    for read in (read_question, read_answer):
        with contextlib.suppress(DecodeError):
            read(line)


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert read_question(b'{"ask":"tell","since":"yesterday"}') == Tell()
    assert read_answer(b'{"answer":"told","broker":"9.0.0","weather":"fine"}') == Told(broker="9.0.0")
