"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

With critical fields, of which only known ones may be accepted, and grants of unknown kinds.
"""

from __future__ import annotations

from fuzz import _codecs
from partage_plugins.codecs import decode_allocation, decode_raw_grants, encode_allocation
from partage_plugins.vocabulary import GPU, Allocation, budget_of
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.allocation()).encode(),
    documents.text_of(documents.allocation(crit=["gen", "gpu.share"], containers={"b": {"npu": [1]}})).encode(),
    b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"fpga":[{"board":"b","slot":3}]}}}',
    b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"foo":1e999,"bar":[ ]}}}',
    (
        b'{"v":1,"gen":2,"crit":["budgets"],"pod":"p","node":"n","budgets":{"b":{"fpga":[{"board":"b"}],"npu":[1]}},'
        b'"containers":{"c":{"fpga":{"budget":"b"},"npu":{"budget":"b"}},"d":{"fpga":{"budget":"b"},"foo":[2]},"e":{}}}'
    ),
)
DICTIONARY = (
    *_codecs.JSON_WORDS,
    b"crit",
    b"containers",
    b"gpu.memory",
    b"anti-affinity",
    b"budgets",
    b'{"budget":"b"}',
)


def target(data: bytes) -> str:
    return _codecs.round_trip(data, _decoded, encode_allocation, lambda it: (it.of(GPU), it.crit, it.uses))


def _decoded(data: bytes) -> Allocation:
    decoded, written = decode_allocation(data, documents.KINDS), decode_raw_grants(data)
    for name, given in written.items():
        used = decoded.budgets_of(name)
        kinds = {*decoded.containers.get(name, {}), *used}
        if not set(given.grants) <= kinds or given.budgets != used:
            raise AssertionError(f"other grants as they were written: {written!r}")
    counted = {name for name in decoded.containers if budget_of(name) is None}
    if set(written) != counted.union(use.container for use in decoded.uses):
        raise AssertionError(f"other containers as they were written: {written!r}")
    return decoded
