"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

With a real kind and a made-up one that has mappings in mappings; parts of other kinds must stay as they were written.
"""

from __future__ import annotations

from functools import partial

from fuzz import _codecs
from partage_plugins.codecs import decode_inventory, encode_inventory
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.inventory(2)).encode(),
    documents.text_of(documents.inventory(1, links=False)).encode(),
    b'{"v":1,"kinds":{"fpga":{"boards":{"a":{"x":1,"y":2},"b":{}},"note":"n","spare":{"board":"b"}},"npu":[1.50]}}',
)
DICTIONARY = (*_codecs.JSON_WORDS, b"degraded: ", b"kubelet", b"links", b"boards", b"kinds", b"ready", b"reads")


def target(data: bytes) -> str:
    decode = partial(decode_inventory, kinds=documents.KINDS)
    return _codecs.round_trip(data, decode, encode_inventory, lambda it: map(it.part, documents.KINDS))
