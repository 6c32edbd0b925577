"""Requests of kube-scheduler are read as upstream spells them; everything else gives one error."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import NodeName
from partage_scheduler.extender.messages import (
    Args,
    BindingArgs,
    FilterResult,
    Host,
    Message,
    PreemptionArgs,
    PrioritizeArgs,
    Result,
    Unreadable,
    read,
    write,
)

QUESTIONS = (Args, PrioritizeArgs, BindingArgs, PreemptionArgs)


def test_nodes_come_by_their_names() -> None:
    body = b'{"Pod":{"metadata":{"name":"p","uid":"u","managedFields":[{}]},"spec":{}},"Nodes":null,"NodeNames":["n1"]}'
    args = read(body, Args)
    assert args.pod.uid == "u"
    assert args.node_names == ("n1",)
    assert read(body, PrioritizeArgs).pod.metadata.uid == "u"
    assert read(body.replace(b'["n1"]', b"null"), Args).node_names is None
    assert read(body.replace(b',"NodeNames":["n1"]', b""), Args).node_names is None


@pytest.mark.parametrize("names", [b"{}", b"[1]", b'["n1"', b'"n1"'])
def test_what_is_no_list_of_names_is_said_so(names: bytes) -> None:
    with pytest.raises(Unreadable, match="can't be read"):
        read(b'{"Pod":{"metadata":{"name":"p"},"spec":{}},"NodeNames":%b}' % names, Args)


def test_answers_have_upstreams_keys() -> None:
    failed = FilterResult(node_names=(NodeName("n1"),), failed_nodes={NodeName("n2"): "why"})
    assert msgspec.json.decode(write(failed)) == {
        "NodeNames": ["n1"],
        "FailedNodes": {"n2": "why"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert write((Host(host=NodeName("n1"), score=10),)) == b'[{"Host":"n1","Score":10}]'
    assert write(Result()) == b'{"Error":""}'


@pytest.mark.parametrize("type_", QUESTIONS)
@given(body=st.binary(max_size=100) | st.text(max_size=100).map(str.encode))
def test_garbage_is_unreadable_and_nothing_else(type_: type[Message], body: bytes) -> None:
    with pytest.raises(Unreadable):
        read(body, type_)


@pytest.mark.parametrize(
    "body",
    [
        b'{"Pod":' + b"[" * 100_000,
        b'{"Pod":{"metadata":{"name":"\xff","uid":"u"}}}',
        b'{"Pod":null,"NodeNames":[]}',
        b'{"Pod":{"metadata":{"name":"p"},"spec":{"priority":4294967296}},"NodeNames":[]}',
    ],
)
def test_what_is_written_wrongly_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read(body, Args)
