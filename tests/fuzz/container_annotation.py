"""Any bytes either decode or raise DecodeError, and what decodes encodes and decodes to the same.

What crishim writes on a container and everyone else reads back.
"""

from __future__ import annotations

from functools import partial

from fuzz import _codecs
from partage_plugins.codecs import decode_container, encode_container
from partage_plugins.vocabulary import GPU
from unit.codecs import documents

SEEDS = (
    documents.text_of(documents.container()).encode(),
    documents.text_of(documents.container(grants={"fpga": [{"board": "b"}], "npu": {}})).encode(),
    documents.text_of(documents.container(budgets={"gpu": "pod"})).encode(),
)
DICTIONARY = (*_codecs.JSON_WORDS, b"grants", b"key", b"limit", b"budgets")


def target(data: bytes) -> str:
    decode = partial(decode_container, kinds=documents.KINDS)
    return _codecs.round_trip(data, decode, encode_container, lambda it: (it.key, it.gen, it.of(GPU), it.budgets))
