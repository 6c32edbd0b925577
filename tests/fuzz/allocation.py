"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

With critical fields, of which only known ones may be accepted, and grants of unknown kinds.
"""

from __future__ import annotations

from fuzz import _codecs
from partage_plugins.codecs import decode_allocation, decode_raw_grants, encode_allocation
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.allocation()).encode(),
    documents.text_of(documents.allocation(crit=["gen", "gpu.share"], containers={"b": {"npu": [1]}})).encode(),
    b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"fpga":[{"board":"b","slot":3}]}}}',
    b'{"v":1,"gen":2,"pod":"p","node":"n","containers":{"c":{"foo":1e999,"bar":[ ]}}}',
)
DICTIONARY = (*_codecs.JSON_WORDS, b"crit", b"containers", b"gpu.memory", b"anti-affinity")


def target(data: bytes) -> str:
    """Reads, and if that works writes and reads again."""
    try:
        decoded = decode_allocation(data, documents.KINDS)
    except DecodeError as error:
        return _codecs.refused(error)
    _codecs.is_json(data)
    written = decode_raw_grants(data)
    if set(written) != set(decoded.containers) or any(
        set(written[each]) - set(decoded.containers[each]) for each in written
    ):
        raise AssertionError(f"other grants as they were written: {written!r}")
    text = encode_allocation(decoded)
    again = decode_allocation(text, documents.KINDS)
    if encode_allocation(again) != text:
        raise AssertionError(f"written as {text!r}, then as {encode_allocation(again)!r}")
    if again.of(GPU) != decoded.of(GPU) or again.crit != decoded.crit:
        raise AssertionError("an allocation changed on its way")
    return "decoded"
