"""What a pod requests, by container and kind."""

from __future__ import annotations

from msgspec import Struct

from partage_plugins.api import (
    GPU,
    ContainerName,
    ContainerRequest,
    GpuRequest,
    Kind,
    KindType,
    Namespace,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
)


class Boards(Struct, frozen=True):
    """A request of a made-up kind."""

    count: int


FPGA = KindType(name=Kind("fpga"), request=Boards, grant=Boards, part=Boards)
POD = PodRef(namespace=Namespace("default"), name=PodName("p"), uid=PodUid("u"))
MAIN = ContainerRequest(name=ContainerName("main"), role="app", asks=((GPU.name, GpuRequest()), (FPGA.name, Boards(2))))
SIDE = ContainerRequest(name=ContainerName("side"), role="sidecar", asks=((FPGA.name, Boards(1)),))
REQUEST = PodRequest(pod=POD, containers=(MAIN, SIDE))


def test_each_kind_sees_its_own_requests() -> None:
    assert MAIN.of(GPU) == GpuRequest()
    assert SIDE.of(GPU) is None
    assert REQUEST.of(GPU) == {"main": GpuRequest()}
    assert REQUEST.of(FPGA) == {"main": Boards(2), "side": Boards(1)}
    assert REQUEST.kinds == {"gpu", "fpga"}


def test_a_request_can_be_hashed_so_that_answers_can_be_kept() -> None:
    assert hash(REQUEST) == hash(PodRequest(pod=POD, containers=(MAIN, SIDE)))


def test_a_kind_that_hands_out_whole_devices_promises_nothing() -> None:
    assert FPGA.promises(Boards(1), None) == frozenset()
