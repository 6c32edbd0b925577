"""What child and parent say to each other arrives as it was said, or is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml import wire
from partage_gpu.nvml.facts import InstanceFacts
from unit.gpu_discovery.nvml import made


@given(made.TOLD)
def test_what_the_child_says_arrives(message: wire.Told) -> None:
    assert wire.WORDS.told(wire.WORDS.encoded(message)) == message


@pytest.mark.parametrize("question", [wire.AskLook(), wire.AskSamples()])
def test_questions_arrive(question: wire.Question) -> None:
    assert wire.WORDS.question(wire.WORDS.encoded(question)) == question


@given(st.binary(max_size=60))
def test_other_bytes_are_not_understood(packet: bytes) -> None:
    with pytest.raises(wire.NotUnderstood):
        wire.WORDS.told(packet)


@given(made.TOLD, st.data())
def test_a_message_cut_short_is_not_understood(message: wire.Told, data: st.DataObject) -> None:
    packet = wire.WORDS.encoded(message)
    with pytest.raises(wire.NotUnderstood):
        wire.WORDS.told(packet[: data.draw(st.integers(0, len(packet) - 1))])


def test_nesting_without_end_is_not_understood() -> None:
    with pytest.raises(wire.NotUnderstood):
        wire.WORDS.told(b'{"type":"looked","facts":' + b"[" * 100_000)


def test_thirty_two_cards_cut_in_seven_fit_into_one_message() -> None:
    links = {f"GPU-{other:036}": 18 for other in range(32)}
    instances = tuple(
        InstanceFacts(uuid=f"MIG-{place:036}", profile="1g.10gb+me", memory_bytes=1 << 40) for place in range(7)
    )
    cards = (made.card(f"GPU-{one:036}", one, links=links, instances=instances) for one in range(32))
    assert len(wire.WORDS.encoded(wire.Looked(made.node(*cards)))) < wire.MAX_BYTES / 2


def test_what_no_packet_can_carry_is_refused_where_it_is_written() -> None:
    with pytest.raises(wire.NotUnderstood, match="allowed"):
        wire.WORDS.encoded(wire.Looked(made.node(made.card("x" * wire.MAX_BYTES))))
