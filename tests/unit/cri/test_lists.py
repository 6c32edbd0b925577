"""Answers of containerd and kubelet, decoded from the wire."""

from __future__ import annotations

import asyncio

import pytest

from partage_base.cri import (
    GivenDevice,
    ListedContainer,
    ListedSandbox,
    MessageWrong,
    PodResources,
    RuntimeClient,
    ServedContainer,
)
from partage_plugins.api.keys import CONTAINER
from partage_plugins.codecs import decode_container
from partage_plugins.errors import DecodeError
from support import wire
from support.fake_runtime import InProcess
from unit.cri import gogo
from unit.crishim.rules.requests import Text

LATER = wire.field(99, "from a later version")


def answering(answer: bytes) -> InProcess:
    """A client whose every call is answered so."""
    return InProcess(lambda _method, _request: answer)


def test_containers_with_their_pod_state_and_annotations() -> None:
    def container(state: int) -> bytes:
        metadata = wire.message((1, "main"), (2, 3))
        labels = wire.field(8, wire.pair("io.kubernetes.pod.uid", "u1"))
        return wire.message((1, f"c{state}"), (2, "s1"), (3, metadata), (6, state)) + labels + LATER

    annotated = container(0) + wire.field(9, wire.pair("a", "b"))
    client = answering(wire.message((1, annotated), *((1, container(state)) for state in (1, 2, 3))) + LATER)
    listed = asyncio.run(RuntimeClient(client).containers())
    assert client.asked == [("/runtime.v1.RuntimeService/ListContainers", b"")]
    assert listed[0] == ListedContainer(
        id="c0", sandbox_id="s1", name="main", pod_uid="u1", exited=False, annotations={"a": "b"}
    )
    assert [each.exited for each in listed] == [False, False, True, False], "what is not known to have ended lives"
    assert [each.running for each in listed] == [False, True, False, False]


def test_one_sandbox_and_none_that_only_begins_alike() -> None:
    metadata = wire.message((1, "p"), (2, "u1"), (3, "default"))
    other = wire.message((1, "s10"), (2, metadata), (7, "runc"))
    mine = wire.message((1, "s1"), (2, metadata), (7, "kata")) + LATER
    client = answering(wire.message((1, other), (1, mine)))
    assert asyncio.run(RuntimeClient(client).sandbox("s1")) == ListedSandbox(
        id="s1", pod_uid="u1", runtime_handler="kata"
    )
    assert client.asked == [("/runtime.v1.RuntimeService/ListPodSandbox", wire.field(1, wire.field(1, "s1")))]
    assert asyncio.run(RuntimeClient(client).sandbox("s")) is None
    assert len(asyncio.run(RuntimeClient(client).sandboxes())) == 2


def test_devices_that_kubelet_gave_by_plugins_and_by_claims() -> None:
    devices = wire.message((1, "nvidia.com/gpu"), (2, "GPU-1"), (2, "GPU-2"))
    device = wire.message((1, wire.field(1, "k8s.gpu.nvidia.com/claim=x")), (2, "gpu.nvidia.com"), (4, "gpu-0"))
    claim = wire.message((2, "claim"), (4, device))
    container = wire.message((1, "main"), (2, devices), (3, 5), (5, claim)) + LATER
    client = answering(wire.field(1, wire.message((1, "p"), (2, "default"), (3, container))))
    assert asyncio.run(PodResources(client).served()) == (
        ServedContainer(
            namespace="default",
            pod="p",
            container="main",
            given=(
                GivenDevice("nvidia.com/gpu", "GPU-1"),
                GivenDevice("nvidia.com/gpu", "GPU-2"),
                GivenDevice("gpu.nvidia.com", "k8s.gpu.nvidia.com/claim=x"),
                GivenDevice("gpu.nvidia.com", "gpu-0"),
            ),
        ),
    )
    assert client.asked == [("/v1.PodResourcesLister/List", b"")]


def test_what_is_no_answer_is_said_to_be_none() -> None:
    with pytest.raises(MessageWrong):
        asyncio.run(RuntimeClient(answering(b"\xff")).containers())


def annotated(id_: str, *annotations: tuple[Text, Text]) -> bytes:
    labels = wire.field(8, wire.pair("io.kubernetes.pod.uid", "u1")) + wire.field(8, wire.pair("app", b"\xff"))
    about = wire.message((1, id_), (2, "s1"), (3, wire.message((1, "main"))), (6, 1))
    return wire.field(1, about + labels + b"".join(wire.field(9, wire.pair(*each)) for each in annotations))


def test_text_that_is_not_utf_8_costs_no_other_container_its_place() -> None:
    """Users control such texts, for example by terminationMessagePath."""
    theirs = annotated("c1", ("io.kubernetes.container.terminationMessagePath", b"/ended/\xff"), (b"\xfe", "x"))
    listed = asyncio.run(RuntimeClient(answering(theirs + annotated("c2", (CONTAINER, "ours")))).containers())
    assert [(each.id, each.pod_uid, each.annotations.get(CONTAINER)) for each in listed] == [
        ("c1", "u1", None),
        ("c2", "u1", "ours"),
    ]
    assert "/ended/\N{REPLACEMENT CHARACTER}" in listed[0].annotations.values()


def test_a_listing_as_older_runtimes_write_it_is_read_whole() -> None:
    listed = asyncio.run(RuntimeClient(answering(gogo.LISTING)).containers())
    assert [(each.id, each.name, each.pod_uid, each.running) for each in listed] == [
        ("c1", "main", "uid-1", True),
        ("c2", "train", "uid-2", True),
    ]
    assert "/tmp/\N{REPLACEMENT CHARACTER}" in listed[0].annotations.values()  # noqa: S108  no file of ours


def test_what_is_not_utf_8_in_our_own_annotation_is_not_read_as_if_it_were() -> None:
    record = f'{{"v":1,"key":"{"a" * 32}","gen":1,"grants":{{}},"later":"?"}}'
    listed = asyncio.run(RuntimeClient(answering(annotated("c1", (CONTAINER, record)))).containers())
    assert decode_container(listed[0].annotations[CONTAINER], ()).gen == 1
    broken = annotated("c1", (CONTAINER, record.encode().replace(b"?", b"\xff")))
    (container,) = asyncio.run(RuntimeClient(answering(broken)).containers())
    with pytest.raises(DecodeError):
        decode_container(container.annotations[CONTAINER], ())


def test_the_pid_of_a_container_is_told_beyond_the_interface() -> None:
    info = wire.pair("info", '{"sandboxID":"s1","pid":4711,"config":{"pid":"not this one"}}')
    client = answering(wire.message((1, wire.message((1, "c1"))), (2, wire.pair("other", "x")), (2, info)) + LATER)
    assert asyncio.run(RuntimeClient(client).pid("c1")) == 4711
    request = wire.message((1, "c1"), (2, 1))
    assert client.asked == [("/runtime.v1.RuntimeService/ContainerStatus", request)]


def capabilities_from(info: str) -> frozenset[str] | None:
    return asyncio.run(RuntimeClient(answering(wire.message((2, wire.pair("info", info))))).capabilities("c1"))


def test_what_a_container_may_do_is_what_it_was_really_made_with() -> None:
    sets = '{"bounding":["CAP_KILL","CAP_SYS_PTRACE"],"ambient":["CAP_CHOWN"],"permitted":null}'
    told = f'{{"pid":1,"config":{{"linux":{{}}}},"runtimeSpec":{{"process":{{"args":["x"],"capabilities":{sets}}}}}}}'
    assert capabilities_from(told) == frozenset(("CAP_KILL", "CAP_SYS_PTRACE", "CAP_CHOWN"))
    assert capabilities_from('{"runtimeSpec":{"process":{}}}') == frozenset()


@pytest.mark.parametrize("info", ["", "{", "{}", '{"pid":3}', '{"runtimeSpec":{}}', '{"runtimeSpec":{"process":null}}'])
def test_a_runtime_may_not_tell_what_its_containers_may_do(info: str) -> None:
    assert capabilities_from(info) is None
    assert asyncio.run(RuntimeClient(answering(b"")).capabilities("c1")) is None


@pytest.mark.parametrize("info", ["", "{", "[]", "{}", '{"pid":0}', '{"pid":"x"}'])
def test_a_runtime_that_does_not_tell_a_pid_has_none(info: str) -> None:
    assert asyncio.run(RuntimeClient(answering(wire.message((2, wire.pair("info", info))))).pid("c1")) is None
    assert asyncio.run(RuntimeClient(answering(b"")).pid("c1")) is None


def test_a_container_is_stopped_with_a_grace() -> None:
    client = answering(b"")
    asyncio.run(RuntimeClient(client).stop("c1", grace_s=2))
    assert client.asked == [("/runtime.v1.RuntimeService/StopContainer", wire.message((1, "c1"), (2, 2)))]
