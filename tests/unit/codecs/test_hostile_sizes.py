# pyright: reportPrivateUsage=false
"""Limits hold exactly at their boundaries, and refusing input beyond them is cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from partage_plugins.api import GPU
from partage_plugins.codecs import complaint, decode_allocation, decode_inventory
from partage_plugins.errors import DecodeError
from unit.codecs import documents
from unit.codecs.documents import KINDS, allocation, gpu_grant, text_of

LARGEST = 262144


def padded(document: object, size: int, letter: str) -> str:
    """The document, padded by an ignored field to exactly `size` bytes."""
    head = text_of(document).replace("{", '{"nobody":"', 1)
    inner = text_of(document).removeprefix("{")
    room = size - len((head[:11] + '",' + inner).encode())
    count, rest = divmod(room, len(letter.encode()))
    return head[:11] + letter * count + "x" * rest + '",' + inner


@pytest.mark.parametrize("letter", ["a", "é", "€", "\U0001f980"])
def test_the_largest_text_is_counted_in_bytes(letter: str) -> None:
    fits, too_large = (padded(allocation(), size, letter) for size in (LARGEST, LARGEST + 1))
    assert len(fits.encode()) == LARGEST
    for text in (fits, fits.encode()):
        assert decode_allocation(text, KINDS).gen == 1
    for raw in (too_large, too_large.encode()):
        with pytest.raises(DecodeError, match=r"^allocation: \$ is 262145 bytes long; allowed: at most 262144 bytes$"):
            decode_allocation(raw, KINDS)


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}"), ('[{"\\"]}\\\\":', "}]")])
def test_32_levels_are_read_and_33_are_not(begin: str, end: str) -> None:
    times, more = divmod(31, len(end))
    fits = begin * times + "[" * more + "1" + "]" * more + end * times
    texts = [text_of(allocation()).replace("{", f'{{"nobody":{nest},', 1) for nest in (fits, f"[{fits}]")]
    assert decode_allocation(texts[0], KINDS).gen == 1
    with pytest.raises(DecodeError, match=r"\$ is nested too deep; allowed: a depth of 32"):
        decode_allocation(texts[1], KINDS)


@pytest.mark.parametrize("text", ['"' + "[" * 200 + '"', '"\\"' + "{" * 200 + '"', '"' + "[" * 99 + '\\\\"'])
def test_brackets_inside_strings_are_not_depth(text: str) -> None:
    assert decode_allocation(text_of(allocation()).replace("{", '{"nobody":' + text + ",", 1), KINDS).gen == 1


@pytest.mark.parametrize("hostile", ["[" * LARGEST, '{"a":' * 50_000, "[]" * 100_000, "]" * LARGEST, '"[' * 100_000])
def test_endless_brackets_are_one_error(hostile: str) -> None:
    with pytest.raises(DecodeError):
        decode_allocation(hostile, KINDS)


COLLECTIONS: dict[str, tuple[Callable[[str, Any], object], Callable[[int], documents.Document], int]] = {
    "cards": (decode_inventory, lambda n: documents.inventory(n, links=False), 512),
    "grants": (
        decode_allocation,
        lambda n: allocation(containers={"c": {"gpu": [gpu_grant()] * n}}),
        512,
    ),
    "containers": (decode_allocation, lambda n: allocation(containers={f"c{i}": {} for i in range(n)}), 512),
    "kinds of grants": (decode_allocation, lambda n: allocation(containers={"c": {f"k{i}": 1 for i in range(n)}}), 32),
    "kinds of parts": (decode_inventory, lambda n: {"v": 1, "kinds": {f"k{i}": 1 for i in range(n)}}, 32),
    "crit": (decode_allocation, lambda n: allocation(crit=["gen"] * n), 64),
    "reads": (decode_inventory, lambda n: {"v": 1, "kinds": {}, "reads": {"allocation": [1] * n}}, 64),
}


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_collections_are_read_up_to_their_border_and_not_beyond(kind: str) -> None:
    reader, of, border = COLLECTIONS[kind]
    reader(text_of(of(border)), (GPU,))
    with pytest.raises(DecodeError, match=f"of length <= {border}"):
        reader(text_of(of(border + 1)), (GPU,))


@pytest.mark.parametrize("links", [[[0]], [[0], [0]], [[0, 0], [0]], [[0, 0, 0]] * 2, [[0, 0]] * 3, [[], []]])
def test_links_that_do_not_fit_the_cards_are_refused(links: object) -> None:
    document = documents.inventory(2)
    document["kinds"]["gpu"]["links"] = links
    with pytest.raises(DecodeError, match=r"\$\.kinds\.gpu is .*; allowed: links must have 2 rows and columns"):
        decode_inventory(text_of(document), (GPU,))


def _boards(keys: int, *, inner: bool, wrong: int) -> str:
    values = {f"k{i}": 70000 if i == wrong else 1 for i in range(keys)}
    boards = {"a": {}, "b": values, "c": {}} if inner else {f"k{i}": {"x": v} for i, v in enumerate(values.values())}
    return text_of({"v": 1, "kinds": {"fpga": {"boards": boards}}})


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("keys", [16, 256, 4096])
def test_explaining_costs_as_many_decodes_as_the_keys_can_be_halved(
    monkeypatch: pytest.MonkeyPatch, keys: int, *, inner: bool
) -> None:
    work: list[int] = []
    complains = complaint._complains

    def counted(document: Any, type_: Any, complaint: str) -> bool:
        work.append(len(msgspec.json.encode(document)))
        return complains(document, type_, complaint)

    monkeypatch.setattr(complaint, "_complains", counted)
    text = _boards(keys, inner=inner, wrong=keys - 1)
    with pytest.raises(DecodeError, match=rf"k{keys - 1}.* is 70000"):
        decode_inventory(text, KINDS)
    assert len(work) <= keys.bit_length() + 3
    assert sum(work) <= 4 * len(text) + 1000


HOSTILE_VALUES = {
    "text": '"' + "x" * 200_000 + '"',
    "backticks": '"' + " - at `$" * 25_000 + '"',
    "keys in words": '"' + "`key` in `$[...]" * 12_000 + '"',
    "control characters": '"' + "\\u001b[2J" * 20_000 + '"',
    "turning text": '"' + "\u202e" * 60_000 + '"',
    "list": "[" + "1," * 100_000 + "1]",
    "keys": "{" + ",".join(f'"{i}":0' for i in range(20_000)) + "}",
    "one key": '{"' + "k" * 200_000 + '":1}',
    "digits": "9" * 200_000,
    "escapes": '"' + "\\\\" * 100_000 + '"',
}


@pytest.mark.parametrize("hostile", HOSTILE_VALUES)
@pytest.mark.parametrize("field", ["v", "gen", "pod", "containers", '"main":{"gpu"', "card", "share"])
def test_whatever_stands_anywhere_is_refused_in_a_short_line(field: str, hostile: str) -> None:
    text = text_of(allocation())
    key = field if field.startswith('"') else f'"{field}"'
    at = text.index(key) + len(key)
    with pytest.raises(DecodeError) as refused:
        decode_allocation(text[:at] + ":" + HOSTILE_VALUES[hostile] + ',"x"' + text[at:], KINDS)
    said = str(refused.value)
    assert len(said) < 600
    assert said.isprintable()
    assert sys.getsizeof(refused.value.value) < 2000


@pytest.mark.parametrize("hostile", ["text", "backticks", "keys", "list", "one key", "turning text"])
@pytest.mark.parametrize("field", ["pool", "health", "id", "model", "numa", "mig"])
def test_whatever_stands_in_a_card_is_refused_in_a_short_line(field: str, hostile: str) -> None:
    document = documents.inventory(1, links=False)
    document["kinds"]["gpu"]["cards"][0][field] = "HERE"
    text = text_of(document).replace('"HERE"', HOSTILE_VALUES[hostile])
    with pytest.raises(DecodeError, match=rf"inventory: \$\.kinds\.gpu\.cards\[0\]\.{field} is ") as refused:
        decode_inventory(text, KINDS)
    assert len(str(refused.value)) < 600
    assert str(refused.value).isprintable()
