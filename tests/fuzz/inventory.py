"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

With a real kind and a made-up one that has mappings in mappings; parts of other kinds must stay as they were written.
"""

from __future__ import annotations

from fuzz import _codecs
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.errors import DecodeError
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.inventory(2)).encode(),
    documents.text_of(documents.inventory(1, links=False)).encode(),
    b'{"v":1,"kinds":{"fpga":{"boards":{"a":{"x":1,"y":2},"b":{}},"note":"n","spare":{"board":"b"}},"npu":[1.50]}}',
)
DICTIONARY = (*_codecs.JSON_WORDS, b"degraded: ", b"kubelet", b"links", b"boards", b"kinds", b"ready", b"reads")


def target(data: bytes) -> str:
    """Reads, and if that works writes and reads again."""
    try:
        decoded = decode_inventory(data, documents.KINDS)
    except DecodeError as error:
        return _codecs.refused(error)
    _codecs.is_json(data)
    text = encode_inventory(decoded)
    again = decode_inventory(text, documents.KINDS)
    if encode_inventory(again) != text:
        raise AssertionError(f"written as {text!r}, then as {encode_inventory(again)!r}")
    if any(again.part(kind) != decoded.part(kind) for kind in documents.KINDS):
        raise AssertionError("an inventory changed on its way")
    return "decoded"
