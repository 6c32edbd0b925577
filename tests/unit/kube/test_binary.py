"""A finalizer is added to an object in the API server's binary form; every other byte is preserved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube.binary import with_finalizer
from partage_base.kube.errors import MalformedResponse


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 1 << 14
    size = bytes([len(content)]) if len(content) < 128 else bytes([len(content) & 127 | 128, len(content) >> 7])
    return bytes([number << 3 | 2]) + size + content


@given(st.binary(max_size=9), st.binary(max_size=400), st.binary(max_size=9))
def test_it_stands_behind_the_object_which_is_not_read(before: bytes, object_: bytes, behind: bytes) -> None:
    added = field(1, field(14, b"x/y"))
    found = with_finalizer("GET", b"k8s\0" + field(1, before) + field(2, object_) + field(3, behind), "x/y")
    assert found == b"k8s\0" + field(1, before) + field(2, object_ + added) + field(3, behind)


@given(st.one_of(st.binary(max_size=40), st.binary(max_size=40).map(lambda body: b"k8s\0" + body)))
def test_any_bytes_are_an_object_or_one_error(body: bytes) -> None:
    try:
        assert with_finalizer("GET", body, "x/y").startswith(b"k8s\0")
    except MalformedResponse:
        return


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"k8s\0", b"k8s\0" + field(1, b""), b"k8s\0\x12\x05abc", b"k8s\0\x10\x05", b"k8s\0" + b"\xff" * 12],
)
def test_what_is_no_object_is_an_error(body: bytes) -> None:
    with pytest.raises(MalformedResponse):
        with_finalizer("GET", body, "x/y")
