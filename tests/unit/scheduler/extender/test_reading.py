"""What kube-scheduler says is read as upstream spells it; everything else is one error, whoever wrote it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.vocabulary import NodeName, PodUid
from partage_scheduler.extender.messages import (
    Args,
    BindingArgs,
    FilterResult,
    Host,
    Message,
    MetaPod,
    MetaVictims,
    PreemptionArgs,
    PreemptionResult,
    PrioritizeArgs,
    Result,
    Unreadable,
    read,
    write,
)

QUESTIONS = (Args, PrioritizeArgs, BindingArgs, PreemptionArgs)
N1 = NodeName("n1")


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


def test_a_binding_is_read() -> None:
    body = b'{"PodName":"p","PodNamespace":"team","PodUID":"u","Node":"n1"}'
    assert read(body, BindingArgs) == BindingArgs(pod_name="p", pod_namespace="team", pod_uid=PodUid("u"), node=N1)


def test_victims_are_read_by_their_uids() -> None:
    body = (
        b'{"Pod":{"metadata":{"name":"p"}},"NodeNameToVictims":null,'
        b'"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v"}],"NumPDBViolations":2}}}'
    )
    victims = MetaVictims(pods=(MetaPod(uid=PodUid("v")),), violations=2)
    assert read(body, PreemptionArgs).node_name_to_meta_victims == {"n1": victims}
    assert msgspec.json.decode(write(PreemptionResult(node_name_to_meta_victims={N1: victims}))) == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}}
    }


def test_answers_have_upstreams_keys() -> None:
    failed = FilterResult(node_names=(N1,), failed_nodes={NodeName("n2"): "why"})
    assert msgspec.json.decode(write(failed)) == {
        "NodeNames": ["n1"],
        "FailedNodes": {"n2": "why"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert write((Host(host=N1, score=10),)) == b'[{"Host":"n1","Score":10}]'
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
