"""Objects of any depth are read: exactly what is nested deeper than any field that is read is dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import Changed, Deleted, Undecodable
from partage_base.kube.answers import DEEPEST, decoded, shallow
from partage_base.kube.events import event_of
from partage_base.kube.pages import page_of

DEPTHS = (900, 1000, 5000, 9990)
"""The API server's limit is 10,000."""


class Placed(msgspec.Struct, frozen=True):
    """Fields before and after the managed fields."""

    metadata: Mapping[str, Any]
    spec: Mapping[str, str]


class Shapeless(msgspec.Struct, frozen=True):
    spec: int


def deep(depth: int) -> str:
    """Managed fields that a client may write."""
    return '{"f:a":' * depth + "{}" + "}" * depth


def pod(fields: str) -> bytes:
    """A pod as Go writes it: managed fields come before the node."""
    meta = f'"name":"p","namespace":"team","uid":"u-1","resourceVersion":"7","managedFields":[{{"fieldsV1":{fields}}}]'
    return f'{{"kind":"Pod","metadata":{{{meta}}},"spec":{{"nodeName":"n1"}}}}'.encode()


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_object_whose_managed_fields_are_deep_is_read(depth: int) -> None:
    found = decoded("GET /x", pod(deep(depth)), Placed)
    assert (found.metadata["name"], found.spec) == ("p", {"nodeName": "n1"})


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(("kind", "event"), [("MODIFIED", Changed), ("DELETED", Deleted)])
def test_a_watch_tells_of_it_as_of_any_other(kind: str, event: type, depth: int) -> None:
    told = event_of("WATCH /x", b'{"type":"%b","object":%b}' % (kind.encode(), pod(deep(depth))), Placed)
    assert isinstance(told, event)
    assert told.version == "7"


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_list_has_it_among_the_others(depth: int) -> None:
    raw = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (pod("{}"), pod(deep(depth)))
    page = page_of("GET /x", raw, Placed)
    assert (len(page.items), page.undecodable, page.version) == (2, (), "9")


def test_what_can_not_be_read_even_so_is_named_with_its_node() -> None:
    told = event_of("WATCH /x", b'{"type":"MODIFIED","object":%b}' % pod(deep(5000)), Shapeless)
    assert isinstance(told, Undecodable)
    assert (told.key, told.uid, told.version, told.node) == (("team", "p"), "u-1", "7", "n1")


TEXT = st.text(st.sampled_from('"\\{}[]:,a\n\u2028é'), max_size=6)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=20,
)


def cut(document: Any, left: int) -> Any:
    """The document with `left` levels kept."""
    if isinstance(document, dict):
        return {key: cut(each, left - 1) for key, each in document.items()} if left > 1 else {}
    if isinstance(document, list):
        return [cut(each, left - 1) for each in document] if left > 1 else []
    return document


@given(document=DOCUMENTS, deepest=st.integers(1, 6), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_of_any_document_the_upper_levels_are_left(
    document: object, deepest: int, *, ascii_only: bool, indent: int | None
) -> None:
    raw = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode()
    assert json.loads(shallow(raw, deepest)) == cut(document, deepest)


@given(document=DOCUMENTS)
def test_what_is_no_deeper_than_that_stays_as_it_is_written(document: object) -> None:
    raw = json.dumps(document, indent=1).encode()
    assert shallow(raw, DEEPEST) == raw


@given(raw=st.binary(max_size=80) | st.lists(st.sampled_from([b'"', b"\\", b"[", b"}", b"x"])).map(b"".join))
def test_of_any_bytes_no_more_than_there_was_is_left(raw: bytes) -> None:
    assert len(shallow(raw, 2)) <= len(raw)
    assert shallow(raw + b'"' + raw, DEEPEST + len(raw)) == raw + b'"' + raw
