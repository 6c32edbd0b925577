"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

The first byte selects the type of the rest. Inventories have a real kind and a made-up one with nested mappings;
allocations have critical fields, of which only known ones may be accepted; grants and parts of unknown kinds must stay
as they were written.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from fuzz import _codecs
from fuzz.engine.json_mutation import change_json
from partage_plugins.api import GPU, Allocation, budget_of
from partage_plugins.codecs import (
    decode_allocation,
    decode_container,
    decode_inventory,
    decode_raw_grants,
    encode_allocation,
    encode_container,
    encode_inventory,
)
from partage_plugins.errors import DecodeError
from unit.codecs import documents


class Codec(NamedTuple):
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], Any]
    told: Callable[[Any], Iterable[object]]
    """The properties that must survive a round trip."""
    seeds: tuple[bytes, ...]


def _allocation(data: bytes) -> Allocation:
    decoded, written = decode_allocation(data, documents.KINDS), decode_raw_grants(data)
    for name, given in written.items():
        kinds = {*decoded.containers.get(name, {}), *decoded.budgets_of(name)}
        if not set(given) <= kinds:
            raise AssertionError(f"other grants as they were written: {written!r}")
    counted = {name for name in decoded.containers if budget_of(name) is None}
    if set(written) != counted.union(use.container for use in decoded.uses):
        raise AssertionError(f"other containers as they were written: {written!r}")
    return decoded


CODECS: Final = (
    Codec(
        _allocation,
        encode_allocation,
        lambda it: (it.of(GPU), it.crit, it.uses),
        (
            documents.text_of(documents.allocation()).encode(),
            documents.text_of(documents.allocation(crit=["gen", "gpu.share"], containers={"b": {"npu": [1]}})).encode(),
            b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"fpga":[{"board":"b","slot":3}]}}}',
            b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"foo":1e999,"bar":[ ]}}}',
            (
                b'{"v":1,"gen":2,"crit":["budgets"],"pod":"p","node":"n","budgets":{"b":{"fpga":[{"board":"b"}],'
                b'"npu":[1]}},"containers":{"c":{"fpga":{"budget":"b"},"npu":{"budget":"b"}},'
                b'"d":{"fpga":{"budget":"b"},"foo":[2]},"e":{}}}'
            ),
        ),
    ),
    Codec(
        partial(decode_inventory, kinds=documents.KINDS),
        encode_inventory,
        lambda it: map(it.part, documents.KINDS),
        (
            documents.text_of(documents.inventory(2)).encode(),
            documents.text_of(documents.inventory(1, links=False)).encode(),
            b'{"v":1,"kinds":{"fpga":{"boards":{"a":{"x":1,"y":2},"b":{}},"note":"n","spare":{"board":"b"}},"npu":[1.50]}}',
        ),
    ),
    Codec(  # written on a container by crishim, read by all others
        partial(decode_container, kinds=documents.KINDS),
        encode_container,
        lambda it: (it.key, it.gen, it.of(GPU), it.budgets),
        (
            documents.text_of(documents.container()).encode(),
            documents.text_of(documents.container(grants={"fpga": [{"board": "b"}], "npu": {}})).encode(),
            documents.text_of(documents.container(budgets={"gpu": "pod"})).encode(),
        ),
    ),
)
SEEDS: Final = tuple(bytes([number]) + seed for number, codec in enumerate(CODECS) for seed in codec.seeds)
DICTIONARY: Final = (
    *_codecs.JSON_WORDS,
    *(b"crit", b"containers", b"gpu.memory", b"anti-affinity", b"budgets", b'{"budget":"b"}'),
    *(b"degraded: ", b"kubelet", b"links", b"boards", b"kinds", b"ready", b"reads", b"grants", b"key", b"limit"),
)


def change(data: bytes, rng: random.Random) -> bytes:
    return data[:1] + change_json(data[1:], rng)


def target(data: bytes) -> str:
    """Equal refusals of two codecs are two outcomes."""
    number = (data[0] if data else 0) % len(CODECS)
    codec = CODECS[number]
    return f"{'abc'[number]} {_round_trip(data[1:], codec)}"


def _round_trip(data: bytes, codec: Codec) -> str:
    """Decodes, and if that works encodes and decodes again: the same text and the same properties."""
    try:
        decoded = codec.decode(data)
    except DecodeError as error:
        return _codecs.refused(error)
    json.loads(data.decode(), parse_constant=_no_constant, parse_int=str)  # integers may be too long for Python
    text = codec.encode(decoded)
    again = codec.decode(text)
    if codec.encode(again) != text:
        raise AssertionError(f"written as {text!r}, then as {codec.encode(again)!r}")
    if list(codec.told(again)) != list(codec.told(decoded)):
        raise AssertionError(f"it changed on its way: {decoded!r}, then {again!r}")
    return "decoded"


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} was accepted as JSON")
