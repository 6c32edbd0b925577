"""A listing of containers is decoded completely, or refused, with any text in it."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from fuzz.engine.wire_mutation import NoMessage, change_message, read
from partage_base.cri import MessageWrong, RuntimeClient
from partage_plugins.api.keys import CONTAINER
from support import wire
from support.fake_runtime import InProcess
from unit.cri import gogo

_CONTAINER: Final = 1
_BYTES: Final = 2
_OURS: Final = wire.field(9, wire.pair(CONTAINER, '{"v":1,"key":"' + "a" * 32 + '","gen":1,"grants":{}}'))
SEEDS: Final = (
    gogo.LISTING,
    wire.field(1, wire.message((1, "c1"), (2, "s1"), (6, 1)) + _OURS + wire.field(9, wire.pair(CONTAINER, b"\xff"))),
    wire.field(1, wire.field(8, wire.pair("io.kubernetes.pod.uid", b"\xff")) + _OURS) + wire.field(1, b""),
)
DICTIONARY: Final = (CONTAINER.encode(), b"io.kubernetes.pod.uid")
_LOOP: Final = asyncio.new_event_loop()


def change(data: bytes, rng: random.Random) -> bytes:
    return change_message(data, rng)


def target(data: bytes) -> str:
    try:
        listed = _LOOP.run_until_complete(RuntimeClient(InProcess(lambda _method, _request: data)).containers())
    except MessageWrong:
        return "none"
    try:
        there = sum(each.number == _CONTAINER and each.type == _BYTES for each in read(data))
    except NoMessage:  # such as deeply nested groups
        return "read by one alone"
    if len(listed) != there:
        raise AssertionError(f"{len(listed)} containers of {there}")
    for each in listed:
        own = each.annotations.get(CONTAINER, "")
        if "\N{REPLACEMENT CHARACTER}".encode() not in data and "\N{REPLACEMENT CHARACTER}" in own:
            raise AssertionError("bytes of our annotation that are no text were read as text")
    return f"{min(len(listed), 3)} containers"
