"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

With critical fields, of which only known ones may be accepted, and grants of unknown kinds.
"""

from __future__ import annotations

from fuzz import _codecs
from partage_plugins.codecs import decode_allocation, decode_raw_grants, encode_allocation
from partage_plugins.vocabulary import GPU, Allocation
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.allocation()).encode(),
    documents.text_of(documents.allocation(crit=["gen", "gpu.share"], containers={"b": {"npu": [1]}})).encode(),
    b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"fpga":[{"board":"b","slot":3}]}}}',
    b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"foo":1e999,"bar":[ ]}}}',
)
DICTIONARY = (*_codecs.JSON_WORDS, b"crit", b"containers", b"gpu.memory", b"anti-affinity")


def target(data: bytes) -> str:
    return _codecs.round_trip(data, _decoded, encode_allocation, lambda it: (it.of(GPU), it.crit))


def _decoded(data: bytes) -> Allocation:
    decoded, written = decode_allocation(data, documents.KINDS), decode_raw_grants(data)
    more = any(set(grants) - set(decoded.containers[name]) for name, grants in written.items())
    if set(written) != set(decoded.containers) or more:
        raise AssertionError(f"other grants as they were written: {written!r}")
    return decoded
