"""Messages between the parent and either child that calls NVML arrive unchanged, or are refused."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml import wire
from partage_gpu.nvml.facts import InstanceFacts, Trouble
from partage_gpu.nvml.wire import NotUnderstood, Packets
from partage_isolation.audit import nvml_messages as audit
from unit.gpu_discovery.nvml import made

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
BOTH: tuple[Packets[Any, Any], ...] = (wire.WORDS, audit.WORDS)
AUDITED = st.one_of(
    st.builds(audit.Ready, st.booleans()),
    st.builds(audit.Limited, TEXTS, TEXTS, U32, TEXTS),
    st.builds(
        audit.Used, TEXTS, U64, st.dictionaries(U32, st.none() | U64, max_size=20).map(lambda by: (*by.items(),))
    ),
    st.builds(audit.Unseen, TEXTS, U64),
    st.builds(audit.CardRefused, TEXTS, TEXTS),
    st.builds(wire.Ended, st.builds(Trouble, kind=st.sampled_from(["failed", "no-library"]), sentence=TEXTS)),
)
SAID = st.tuples(st.just(wire.WORDS), made.TOLD) | st.tuples(st.just(audit.WORDS), AUDITED)
ASKED = st.one_of(
    st.tuples(st.just(wire.WORDS), st.sampled_from([wire.AskSnapshot(), wire.AskSamples()])),
    st.tuples(st.just(audit.WORDS), st.builds(audit.AskUse, TEXTS) | st.builds(audit.AskLimit, TEXTS, TEXTS, U64)),
)
Said = tuple[Packets[Any, Any], Any]


@given(SAID)
def test_what_the_child_says_arrives(said: Said) -> None:
    words, message = said
    assert words.told(words.encoded(message)) == message


@given(ASKED)
def test_questions_arrive(asked: Said) -> None:
    words, question = asked
    assert words.question(words.encoded(question)) == question


@given(st.sampled_from(BOTH), st.binary(max_size=200))
def test_any_bytes_are_understood_or_refused(words: Packets[Any, Any], packet: bytes) -> None:
    for read in (words.told, words.question):
        with contextlib.suppress(NotUnderstood):
            read(packet)


@given(SAID, st.data())
def test_a_message_that_was_cut_or_has_more_is_refused(said: Said, data: st.DataObject) -> None:
    words, message = said
    packet = words.encoded(message)
    cut = data.draw(st.integers(0, len(packet) - 1))
    for wrong in (packet[:cut], packet + b"\0"):
        with pytest.raises(NotUnderstood):
            words.told(wrong)


def test_a_question_is_no_answer_and_an_answer_no_question() -> None:
    with pytest.raises(NotUnderstood):
        audit.WORDS.told(audit.WORDS.encoded(audit.AskUse("GPU-1")))
    with pytest.raises(NotUnderstood):
        audit.WORDS.question(audit.WORDS.encoded(audit.Ready()))


@pytest.mark.parametrize(
    "said",
    [
        {"type": "used", "card": "GPU-1", "taken_ns": 1, "processes": [[4711, 1], [4711, 2]]},
        {"type": "refused", "card": "GPU-1", "why": "x" * (audit.LONGEST_TEXT + 1)},
        {"type": "limited", "card": "GPU-1", "group": "/g", "number": 1, "why": "x" * (audit.LONGEST_TEXT + 1)},
    ],
    ids=["a process that is named twice", "a refusal of any length", "an answer of any length"],
)
def test_what_a_sound_child_never_says_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstood):
        audit.WORDS.told(msgspec.msgpack.encode(said))


def test_nesting_without_end_is_not_understood() -> None:
    with pytest.raises(NotUnderstood):
        wire.WORDS.told(b'{"type":"looked","facts":' + b"[" * 100_000)


def test_thirty_two_cards_cut_in_seven_fit_into_one_message() -> None:
    links = {f"GPU-{other:036}": 18 for other in range(32)}
    instances = tuple(
        InstanceFacts(uuid=f"MIG-{place:036}", profile="1g.10gb+me", memory_bytes=1 << 40) for place in range(7)
    )
    cards = (made.card(f"GPU-{one:036}", one, links=links, instances=instances) for one in range(32))
    assert len(wire.WORDS.encoded(wire.SnapshotTaken(made.node(*cards)))) < wire.MAX_BYTES / 2


def test_as_many_processes_as_a_card_may_have_fit_into_one_message() -> None:
    most = audit.Used("GPU-1", 2**63, tuple((pid, 2**63) for pid in range(2**22, 2**22 + audit.MOST_PROCESSES)))
    assert audit.WORDS.told(audit.WORDS.encoded(most)) == most


def test_what_no_packet_can_carry_is_refused_where_it_is_written() -> None:
    with pytest.raises(NotUnderstood, match="allowed"):
        wire.WORDS.encoded(wire.SnapshotTaken(made.node(made.card("x" * wire.MAX_BYTES))))
