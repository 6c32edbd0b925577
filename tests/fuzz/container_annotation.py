"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

What crishim writes on a container and everyone else reads back.
"""

from __future__ import annotations

from fuzz import _codecs
from partage_plugins.codecs import decode_container, encode_container
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.container()).encode(),
    documents.text_of(documents.container(grants={"fpga": [{"board": "b"}], "npu": {}})).encode(),
)
DICTIONARY = (*_codecs.JSON_WORDS, b"grants", b"key", b"limit")


def target(data: bytes) -> str:
    """Reads, and if that works writes and reads again."""
    try:
        decoded = decode_container(data, documents.KINDS)
    except DecodeError as error:
        return _codecs.refused(error)
    _codecs.is_json(data)
    text = encode_container(decoded)
    again = decode_container(text, documents.KINDS)
    if encode_container(again) != text:
        raise AssertionError(f"written as {text!r}, then as {encode_container(again)!r}")
    if (again.key, again.gen, again.of(GPU)) != (decoded.key, decoded.gen, decoded.of(GPU)):
        raise AssertionError("a container annotation changed on its way")
    return "decoded"
