"""Every refusal is one short line: where, which value, and what is allowed there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from partage_plugins.api import Kind, KindType
from partage_plugins.codecs import decode_allocation, decode_container, decode_inventory
from partage_plugins.errors import DecodeError
from unit.codecs import documents
from unit.codecs.documents import KINDS, allocation, gpu_grant, text_of

READERS: dict[str, tuple[Callable[[str | bytes, Any], object], documents.Document]] = {
    "inventory": (decode_inventory, documents.inventory()),
    "allocation": (decode_allocation, documents.allocation()),
    "container annotation": (decode_container, documents.container()),
}


def refusal(raw: Any, read: Callable[[Any, Any], object] = decode_allocation) -> DecodeError:
    with pytest.raises(DecodeError) as refused:
        read(raw, KINDS)
    said = str(refused.value)
    assert said.isprintable()
    assert len(said) < 600
    error = refused.value
    assert said == f"{error.what}: {error.path} is {error.value}; allowed: {error.allowed}"
    return error


def grants_of(count: int, wrong: dict[int, Any]) -> str:
    """An allocation of `count` containers, some of them with changed grants."""
    return text_of(allocation(containers={f"c{i}": {"gpu": [gpu_grant(**wrong.get(i, {}))]} for i in range(count)}))


@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize(
    ("raw", "path", "value", "allowed"),
    [
        ("", "$", "empty", "JSON (Input data was truncated)"),
        ("null", "$", "null", "object, got null"),
        ("[1]", "$", "[1]", "object, got array"),
        ('{"v":1', "$", """'{"v":1'""", "JSON (Input data was truncated)"),
        ("\ufeff{}", "$", "'\\ufeff{}'", "JSON (JSON is malformed: invalid character (byte 0))"),
        (b"\xff", "$", "text that is not Unicode", "UTF-8"),
        ("\ud800", "$", "text that is not Unicode", "UTF-8"),
        ('{"v":2,', "$", """'{"v":2,'""", "JSON (Input data was truncated)"),
    ],
)
def test_each_decoder_names_path_value_and_what_is_allowed(
    what: str, raw: str | bytes, path: str, value: str, allowed: str
) -> None:
    refused = refusal(raw, READERS[what][0])
    assert (refused.what, refused.path, refused.value, refused.allowed) == (what, path, value, allowed)


@pytest.mark.parametrize("what", READERS)
def test_a_text_cut_anywhere_is_refused(what: str) -> None:
    read, document = READERS[what]
    text = text_of(document).encode()
    for end in range(len(text)):
        assert refusal(text[:end], read).allowed.startswith("JSON (")


@pytest.mark.parametrize("ignored", [b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf8\x88\x80\x80\x80"'])
@pytest.mark.parametrize("what", READERS)
def test_a_text_that_is_not_utf8_is_refused_even_where_nobody_reads(what: str, ignored: bytes) -> None:
    read, document = READERS[what]
    text = text_of(document).encode().replace(b"{", b'{"nobody":' + ignored + b",", 1)
    assert refusal(text, read).allowed == "UTF-8"
    assert refusal(bytearray(text), read).allowed == "UTF-8"
    assert refusal(memoryview(text), read).allowed == "UTF-8"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_of_bytes_is_read(kind: Callable[[bytes], bytes]) -> None:
    text = text_of(allocation()).encode()
    assert decode_allocation(kind(text), KINDS) == decode_allocation(text, KINDS)


@pytest.mark.parametrize("escaped", ["\\ud800", "\\udc00", "\\ud800\\ud800", "\\udbff\\u0041", "\\q", "\\u12g4", "\n"])
@pytest.mark.parametrize("field", ["pod", "nobody"])
def test_a_string_that_is_no_string_is_refused(field: str, escaped: str) -> None:
    text = text_of(allocation(nobody="here")).replace(f'"{field}":"', f'"{field}":"{escaped}')
    assert refusal(text).allowed.startswith("JSON (")


@pytest.mark.parametrize("wrong", [0, 1, 332, 333, 510, 511])
def test_the_container_with_the_wrong_grant_is_found(wrong: int) -> None:
    refused = refusal(grants_of(512, {wrong: {"share": 1001}}))
    assert refused.path == f"$.containers.c{wrong}.gpu[0].share"
    assert (refused.value, refused.allowed) == ("1001", "an integer from 0 to 1000")


def test_of_two_wrong_containers_the_first_is_named() -> None:
    assert refusal(grants_of(64, {9: {"share": 1001}, 40: {"share": 1002}})).path == "$.containers.c9.gpu[0].share"
    assert refusal(grants_of(64, {9: {"memory": -1}, 40: {"share": 1002}})).path == "$.containers.c9.gpu[0].memory"


@pytest.mark.parametrize("wrong", ["Upper", "dot.ted", "", "-", "a\n", "\u202e", "x" * 64, "x" * 100_000])
@pytest.mark.parametrize("at", [0, 5, 9])
def test_a_name_that_cannot_be_is_found_among_others(wrong: str, at: int) -> None:
    names = [f"c{i}" for i in range(9)]
    names.insert(at, wrong)
    refused = refusal(text_of(allocation(containers={name: {} for name in names})))
    assert refused.path.startswith("$.containers")
    assert refused.value.startswith(f"named {wrong!r}"[:60].removesuffix("'").split("\\")[0])
    assert refused.allowed == "a DNS label: lower-case letters, digits and -, at most 63"


@pytest.mark.parametrize(
    ("boards", "path", "allowed"),
    [
        ({"a": {"x": 1, "y": 70000}, "b": {"y": 70000}}, ".boards.a.y", "an integer from 0 to 65535"),
        ({"a": {"x": 1}, "b": {"x": 1, "y": 70000}, "c": {}}, ".boards.b.y", "an integer from 0 to 65535"),
        ({"a": {"x": 1}, "b": {"x": 1, "Y": 1}}, ".boards.b.Y", "a kind: lower-case letters"),
        ({"a": {}, "b.[...].c`": {}}, '.boards["b.[...].c`"]', "a kind: lower-case letters"),
        ({"a": {}, " - at `$.x`": {}}, '.boards[" - at `$.x`"]', "a kind: lower-case letters"),
        ({"a": {}, "b": [1]}, ".boards.b", "object, got array"),
    ],
)
def test_keys_hidden_in_mappings_of_mappings_are_found(boards: object, path: str, allowed: str) -> None:
    refused = refusal(text_of({"v": 1, "kinds": {"fpga": {"boards": boards}}}), decode_inventory)
    assert refused.path == f"$.kinds.fpga{path}"
    assert refused.allowed.startswith(allowed)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("note", "", "1 to 128 printable characters or null"),
        ("note", 3, "1 to 128 printable characters or null"),
        ("spare", 3, "object | null, got int"),
        ("spare", {}, "an object with the field `board`"),
    ],
)
def test_described_and_optional_types_are_explained(field: str, value: object, allowed: str) -> None:
    refused = refusal(text_of({"v": 1, "kinds": {"fpga": {"boards": {}, field: value}}}), decode_inventory)
    assert (refused.path, refused.allowed) == (f"$.kinds.fpga.{field}", allowed)


@pytest.mark.parametrize("written", ["1.0", "1e2", "-0.0", "1E+2", "1e999", "NaN", "Infinity", "true", '"1"', "null"])
def test_only_an_integer_is_an_integer(written: str) -> None:
    refused = refusal(text_of(allocation()).replace('"gen":1', f'"gen":{written}'))
    if written in ("NaN", "Infinity"):
        assert refused.allowed.startswith("JSON (")
    else:
        assert (refused.path, refused.value) == ("$.gen", written)
        assert refused.allowed == "an integer from 1 to 9007199254740992"


@pytest.mark.parametrize("digits", [16, 19, 20, 100, 4300, 4301, 200_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_too_large_is_shown_by_its_beginning(digits: int, sign: str) -> None:
    refused = refusal(text_of(allocation()).replace('"gen":1', f'"gen":{sign}{"9" * digits}'))
    assert refused.path == "$.gen"
    assert refused.value.startswith(f"{sign}999999999999999")
    assert refused.allowed == "an integer from 1 to 9007199254740992"


@pytest.mark.parametrize("elsewhere", ["1e999", "9" * 5000, '"é\\u0000"', "[[]]", "-0"])
def test_odd_values_that_nobody_reads_do_not_hide_the_wrong_one(elsewhere: str) -> None:
    text = grants_of(3, {1: {"limit": 1001}}).replace("{", '{"nobody":' + elsewhere + ",", 1)
    assert refusal(text).path == "$.containers.c1.gpu[0].limit"


def test_a_key_written_twice_counts_once_and_is_read_from_its_last_value() -> None:
    text = text_of(allocation()).replace('"gen":1', '"gen":1,"gen":2')
    assert decode_allocation(text, KINDS).gen == 2


def test_a_wrong_value_that_is_written_again_is_said_to_be() -> None:
    refused = refusal(text_of(allocation()).replace('"gen":1', '"gen":0,"gen":2'))
    assert (refused.path, refused.value) == ("$.gen", "written more than once")
    assert refused.allowed == "one value for each key; int >= 1"


class Fragile(Struct, frozen=True):
    """A plugin author's type whose `__post_init__` fails."""

    name: str

    def __post_init__(self) -> None:
        raise KeyError(self.name)


class Holder(Struct, frozen=True):
    """A mapping followed by such a type."""

    by_name: dict[str, int]
    after: Fragile


def test_a_kinds_own_type_that_raises_anything_is_a_refusal_too() -> None:
    fragile = KindType(name=Kind("fragile"), request=Fragile, grant=Fragile, part=Fragile)
    holder = KindType(name=Kind("holder"), request=Fragile, grant=Fragile, part=Holder)
    with pytest.raises(DecodeError, match=r"inventory: \$\.kinds\.fragile is"):
        decode_inventory(b'{"v":1,"kinds":{"fragile":{"name":"x"}}}', [fragile])
    # A wrong value in a mapping is located by decoding half of the mapping; the field after it then raises.
    with pytest.raises(DecodeError, match=r"inventory: \$\.kinds\.holder\.by_name\.b is \[\]"):
        decode_inventory(b'{"v":1,"kinds":{"holder":{"by_name":{"a":1,"b":[]},"after":{"name":"x"}}}}', [holder])
