"""The Python twin of wire.h matches a C compiler's view of the header byte for byte; any bytes can be read."""

from __future__ import annotations

import shutil
import subprocess
from enum import IntEnum
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.pieces import Shared
from partage_isolation.timeslices.line import LINE_BYTES, LineState, pack
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Loss, Result, TimeSlice, What

_HEADER: Final = Path(__file__).parents[4] / "isolation/preload/core/wire.h"
_PROGRAM: Final = r"""
#include "wire.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#define NUMBER(name) printf(#name " %llu\n", (unsigned long long)(name));
#define PLACE_IN(type, name, field) printf(name " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field));
#define LINE_PLACE(field) PLACE_IN(struct wire_line, "line." #field, field)
#define PLACE(field) PLACE_IN(struct wire, #field, field)
static void dump(const char *name, const struct wire *wire) {
    printf("=%s ", name);
    for (size_t i = 0; i < sizeof *wire; i++) printf("%02x", ((const unsigned char *)wire)[i]);
    printf("\n");
}
int main(void) {
    NUMBERS
    PLACES
    LINE_PLACES
    const uint64_t words[] = WORDS;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        const uint64_t word = words[i], epochs = (1ull << WIRE_EPOCH_BITS) - 1;
        printf("word%u %llu %llu %llu\n", i, (unsigned long long)(word & ((1ull << WIRE_STATE_BITS) - 1)),
               (unsigned long long)(word >> WIRE_STATE_BITS & epochs),
               (unsigned long long)(word >> (WIRE_STATE_BITS + WIRE_EPOCH_BITS) << WIRE_DEADLINE_SHIFT));
    }
    struct wire wire = {.version = 1, .what = WIRE_LEND, .card = 2, .result = 0, .number = 7, .flags = 5};
    wire.amounts.used = 0x1122334455667788; wire.amounts.lent = 2; wire.amounts.changes = 3;
    wire.amounts.in_flight = 4; wire.amounts.returns = 5; wire.amounts.hidden = 6;
    dump("amounts", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_EXPORT, .card = 1, .number = 3, .flags = WIRE_ANYBODY};
    wire.shared.name = 0x1122334455667788; wire.shared.number = 2; wire.shared.size = 3; wire.shared.freed = 4;
    dump("shared", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_CARD | WIRE_ANSWER, .card = 1, .result = WIRE_OK, .number = 9};
    memset(wire.card_is.uuid, 0xab, 16);
    wire.card_is.memory = 1ull << 40; wire.card_is.share = 250; wire.card_is.limit = 1000; wire.card_is.is_mig = 1;
    dump("card", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_VIEW | WIRE_ANSWER};
    wire.view.limit = 1; wire.view.charged = 2; wire.view.fixed = 3;
    dump("view", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_PROCESSES_OF | WIRE_ANSWER, .flags = 3};
    for (int i = 0; i < 3; i++) wire.processes[i] = (struct wire_process){.pid = 10u + i, .bytes = 100u + i};
    dump("processes", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_HELLO | WIRE_ANSWER};
    memset(wire.hello.token, 0xcd, 16); wire.hello.cards = 8;
    dump("hello", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_DRAINED, .card = 1};
    wire.timeslice.at = 0x1122334455667788; wire.timeslice.epoch = 0x1ffff; wire.timeslice.is_blocked = 1;
    wire.timeslice.idle_us = 500;
    wire.timeslice.loss = WIRE_LOSS_FREE; wire.timeslice.loss_after = 1000000000;
    dump("timeslice", &wire);
    memset(&wire, 0, sizeof wire);
    wire = (struct wire){.version = 1, .what = WIRE_LINE, .card = 3, .timeslice.epoch = 7};
    dump("line", &wire);
    return 0;
}
"""
_PLACES: Final = {
    "version": (0, 2),
    "what": (2, 2),
    "card": (4, 2),
    "result": (6, 2),
    "number": (8, 4),
    "flags": (12, 4),
    "words": (16, 48),
    "hello.token": (16, 16),
    "hello.cards": (32, 4),
    "amounts.used": (16, 8),
    "amounts.lent": (24, 8),
    "amounts.changes": (32, 4),
    "amounts.in_flight": (36, 4),
    "amounts.returns": (40, 4),
    "amounts.hidden": (48, 8),
    "shared.name": (16, 8),
    "shared.number": (24, 8),
    "shared.size": (32, 8),
    "shared.freed": (40, 8),
    "card_is.uuid": (16, 16),
    "card_is.memory": (32, 8),
    "card_is.share": (40, 4),
    "card_is.limit": (44, 4),
    "card_is.is_mig": (48, 4),
    "view.limit": (16, 8),
    "view.charged": (24, 8),
    "view.fixed": (32, 8),
    "processes": (16, 48),
    "timeslice.at": (16, 8),
    "timeslice.epoch": (24, 4),
    "timeslice.is_blocked": (28, 4),
    "timeslice.idle_us": (32, 4),
    "timeslice.loss": (36, 4),
    "timeslice.loss_after": (40, 8),
}
_LINE_PLACES: Final = {"word": (0, 8), "wake": (8, 4)}
_WORDS: Final = (
    (LineState.CLOSED, 0, 0),
    (LineState.TIMESLICE, 0x1FFFF, 123_456_789_012_345),
    (LineState.SOLE, 5, 0),
    (LineState.FREE, 1 << 16, 0),
)
_CONSTANTS: Final = {
    "WIRE_VERSION": wire.VERSION,
    "WIRE_BYTES": wire.BYTES,
    "WIRE_ANSWER": wire.ANSWER,
    "WIRE_NO_CARD": wire.NO_CARD,
    "WIRE_PROCESSES": wire.PROCESSES_AT_ONCE,
    "WIRE_LINE_BYTES": LINE_BYTES,
    "WIRE_STATE_BITS": 3,
    "WIRE_EPOCH_BITS": 17,
    "WIRE_DEADLINE_SHIFT": 14,
}


def _named(numbers: type[IntEnum | Flag], prefix: str = "WIRE_") -> dict[str, int]:
    return {f"{prefix}{name}": int(member) for name, member in numbers.__members__.items()}


_NUMBERS: Final = {
    **_CONSTANTS,
    **_named(What),
    **_named(Result),
    **_named(Flag),
    **_named(Loss, "WIRE_LOSS_"),
    **_named(LineState),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the compiled header reports of itself."""
    compiler = shutil.which("cc")
    assert compiler, "a C compiler is needed to compare with the header"
    folder = tmp_path_factory.mktemp("wire")
    numbers = "".join(f"NUMBER({name})" for name in _NUMBERS)
    places = "".join(f"PLACE({field})" for field in _PLACES)
    line_places = "".join(f"LINE_PLACE({field})" for field in _LINE_PLACES)
    words = "{" + ", ".join(f"{pack(*said)}ull" for said in _WORDS) + "}"
    text = _PROGRAM.replace("NUMBERS", numbers).replace("LINE_PLACES", line_places).replace("PLACES", places)
    text = text.replace("WORDS", words)
    (folder / "told.c").write_text(text)
    program = folder / "told"
    subprocess.run([compiler, "-I", _HEADER.parent, "-o", program, folder / "told.c"], check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines)


def test_every_number_is_the_header_s(told: dict[str, str]) -> None:
    assert {name: int(told[name]) for name in _NUMBERS} == _NUMBERS


def test_no_number_of_the_header_is_unknown_here() -> None:
    text = _HEADER.read_text()
    words = set(text.replace(",", " ").replace("=", " ").replace("(", " ").split())
    known = {*_NUMBERS, "WIRE_PATH"}
    assert {word for word in words if word.startswith("WIRE_") and word.isupper() and word.isidentifier()} == known
    assert f'#define WIRE_PATH "{wire.PATH}"' in text


def test_every_field_lies_where_the_header_has_it(told: dict[str, str]) -> None:
    assert {field: tuple(map(int, told[field].split())) for field in _PLACES} == _PLACES


def test_a_line_is_read_by_the_header_as_it_was_written(told: dict[str, str]) -> None:
    assert {field: tuple(map(int, told[f"line.{field}"].split())) for field in _LINE_PLACES} == _LINE_PLACES
    for number, (state, epoch, deadline) in enumerate(_WORDS):
        assert tuple(map(int, told[f"word{number}"].split())) == (state, epoch, deadline >> 14 << 14)


def test_packets_are_the_bytes_that_c_writes(told: dict[str, str]) -> None:
    amounts = Amounts(0x1122334455667788, 2, 3, 4, 5, 6)
    ask = wire.question(What.LEND, card=2, number=7, flags=5, body=wire.amounts_body(amounts))
    assert ask.hex() == told["=amounts"]
    shared = wire.shared_body(Shared(0x1122334455667788, 2, 3, 4))
    assert wire.question(What.EXPORT, card=1, number=3, flags=Flag.ANYBODY, body=shared).hex() == told["=shared"]
    nine = wire.read(wire.question(What.CARD, card=1, number=9))
    assert nine is not None
    card = wire.card_body(b"\xab" * 16, 1 << 40, share=250, limit=1000, is_mig=True)
    assert wire.answer(nine, Result.OK, card).hex() == told["=card"]
    timeslice = wire.lease_body(TimeSlice(0x1122334455667788, 0x1FFFF, 1, 500, Loss.FREE, 1_000_000_000))
    assert wire.question(What.DRAINED, card=1, body=timeslice).hex() == told["=timeslice"]
    assert wire.line_hint(3, 7).hex() == told["=line"]


def test_what_c_writes_is_read_as_it_was_meant(told: dict[str, str]) -> None:
    packets = {
        name: wire.read(bytes.fromhex(told[f"={name}"]))
        for name in ("amounts", "card", "view", "processes", "hello", "shared", "timeslice")
    }
    assert all(packets.values())
    read = {name: packet for name, packet in packets.items() if packet is not None}
    assert read["amounts"].amounts == Amounts(0x1122334455667788, 2, 3, 4, 5, 6)
    assert read["shared"].shared == Shared(0x1122334455667788, 2, 3, 4)
    assert wire.read_card(read["card"]) == (b"\xab" * 16, 1 << 40, 250, 1000, 1)
    assert read["timeslice"].timeslice == TimeSlice(0x1122334455667788, 0x1FFFF, 1, 500, Loss.FREE, 1_000_000_000)
    assert wire.read_view(read["view"]) == (1, 2, 3)
    assert wire.read_processes(read["processes"]) == ((10, 100), (11, 101), (12, 102))
    assert wire.read_hello(read["hello"]) == (b"\xcd" * 16, 8)


# ---- Any bytes -------------------------------------------------------------------------------------------------------


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


@given(st.builds(Amounts, _U64, _U64, _U32, _U32, _U32, _U64))
def test_amounts_come_back_as_they_were_sent(amounts: Amounts) -> None:
    packet = wire.read(wire.question(What.AMOUNTS, body=wire.amounts_body(amounts)))
    assert packet is not None
    assert packet.amounts == amounts


@given(st.builds(TimeSlice, _U64, _U32, _U32, _U32, _U32, _U64))
def test_what_is_said_of_leases_comes_back_as_it_was_sent(timeslice: TimeSlice) -> None:
    packet = wire.read(wire.question(What.DRAINED, body=wire.lease_body(timeslice)))
    assert packet is not None
    assert packet.timeslice == timeslice
