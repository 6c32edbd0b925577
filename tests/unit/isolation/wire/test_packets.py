"""Whatever comes in is a packet or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.ledger.account import Amounts
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Lease, Result, What


@given(st.binary(max_size=200))
def test_only_packets_of_the_right_length_are_read(data: bytes) -> None:
    assert (wire.read(data) is not None) is (len(data) == wire.BYTES)


@given(st.binary(min_size=wire.BYTES, max_size=wire.BYTES))
def test_any_packet_can_be_looked_at_and_answered(data: bytes) -> None:
    packet = wire.read(data)
    assert packet is not None
    assert len(packet.token) == wire.TOKEN_BYTES
    assert packet.first_process >= 0
    back = wire.read(wire.answer(packet, Result.OK, wire.amounts_body(packet.amounts)))
    assert back is not None
    assert (back.number, back.card, back.amounts) == (packet.number, packet.card, packet.amounts)


_U64 = st.integers(min_value=0, max_value=2**64 - 1)
_U32 = st.integers(min_value=0, max_value=2**32 - 1)


@given(st.builds(Amounts, _U64, _U64, _U32, _U32, _U32))
def test_amounts_come_back_as_they_were_sent(amounts: Amounts) -> None:
    packet = wire.read(wire.question(What.AMOUNTS, body=wire.amounts_body(amounts)))
    assert packet is not None
    assert packet.amounts == amounts


@given(st.builds(Lease, _U64, _U32, _U32, _U32, _U32, _U64))
def test_what_is_said_of_leases_comes_back_as_it_was_sent(lease: Lease) -> None:
    packet = wire.read(wire.question(What.DRAINED, body=wire.lease_body(lease)))
    assert packet is not None
    assert packet.lease == lease
