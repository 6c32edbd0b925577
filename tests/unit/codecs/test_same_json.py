"""Every text that our decoder accepts as JSON is JSON to the standard library too, with the same meaning."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from partage_plugins.api import Kind
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError
from unit.codecs import strategies

PIECES = [*'{}[]:,"\\10-.eE+', "\\u", "d800", "00e9", "true", "null"]
NOISE = [*" \n\t\r\f\v\u00a0\ufeff\x00\x1f\x7fé'", "NaN", "Infinity", "//"]


def kept(text: str) -> bytes | None:
    """The text after a round trip as an opaque part of an inventory; None if it is refused."""
    try:
        inventory = decode_inventory('{"v":1,"kinds":{"npu":' + text + "}}", ())
    except DecodeError:
        return None
    raw = inventory.kinds[Kind("npu")]
    assert isinstance(raw, msgspec.Raw)
    return bytes(raw)


def strictly(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


@given(st.lists(st.sampled_from([*PIECES, *NOISE]), max_size=12).map("".join))
@example('"\\ud800"')
@example('"\\udc00\\ud800"')
@example("1e999")
@example("-")
@example("01")
@example("1.")
@example(".5")
@example('"\x7f"')
@example("[1,]")
@example('{"a":1,"a":2}')
def test_a_text_that_is_accepted_is_json(text: str) -> None:
    raw = kept(text)
    if raw is not None and not text.startswith("}"):
        json.loads(raw, parse_constant=strictly)
        raw.decode().encode()


@given(strategies.json_values, st.booleans())
def test_json_of_the_standard_library_is_accepted_and_means_the_same(value: Any, ascii_only: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    raw = kept(text)
    if raw is None:
        assert "\\ud" in text or not text.isascii()  # half of a surrogate pair, which no UTF-8 can carry
        return
    assert json.loads(raw) == value
    assert msgspec.json.decode(msgspec.json.encode(msgspec.Raw(raw))) == json.loads(raw)
