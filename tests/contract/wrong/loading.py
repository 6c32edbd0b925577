"""Scheduler plugins that must not be loaded, or that misread pods."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from partage_fpga_template.kind import FPGA, FpgaRequest
from partage_fpga_template.scheduler import RESOURCE, FpgaScheduler
from partage_plugins import hookimpl
from partage_plugins.api import ContainerName, Kind, KindType, Pod

Requests = Mapping[ContainerName, Mapping[Kind, object]] | None


class LiquidRequest(Struct):
    """Mutable, so it can't be hashed."""

    boards: int


class ClaimsAKindUnsaid(FpgaScheduler):
    @hookimpl
    def partage_kind(self) -> object:
        return KindType(name=Kind("boards"), request=FPGA.request, grant=FPGA.grant, part=FPGA.part)


class DeclaresLiquidRequests(FpgaScheduler):
    @hookimpl
    def partage_kind(self) -> object:
        return KindType(name=Kind("fpga"), request=LiquidRequest, grant=FPGA.grant, part=FPGA.part)


class RaisesWhenMade(FpgaScheduler):
    def __init__(self) -> None:
        raise OSError("no such device")


class AnswersForForeignPods(FpgaScheduler):
    @hookimpl
    def partage_requests(self, pod: Pod) -> Requests:
        return {pod.containers[0].name: {FPGA.name: FpgaRequest(1)}}


class RefusesForeignPods(FpgaScheduler):
    @hookimpl
    def partage_requests(self, pod: Pod) -> Requests:
        for container in pod.containers:
            for key in container.limits:
                FpgaScheduler().partage_requests(_asking(pod, container.limits[key]))
        return FpgaScheduler().partage_requests(pod)


class FailsOnGarbage(FpgaScheduler):
    @hookimpl
    def partage_requests(self, pod: Pod) -> Requests:
        asked = {each.name: int(each.limits.get(RESOURCE, 0)) for each in pod.containers}
        return {name: {FPGA.name: FpgaRequest(boards)} for name, boards in asked.items() if boards > 0} or None


class AcceptsGarbage(FpgaScheduler):
    @hookimpl
    def partage_requests(self, pod: Pod) -> Requests:
        asked = {each.name: each.limits[RESOURCE] for each in pod.containers if RESOURCE in each.limits}
        boards = {
            name: int(text) if text.lstrip("-").isdecimal() and len(text) < 99 else 1 for name, text in asked.items()
        }
        return {name: {FPGA.name: FpgaRequest(number)} for name, number in boards.items()} or None


class ReadsDifferently(FpgaScheduler):
    _times = 0

    @hookimpl
    def partage_requests(self, pod: Pod) -> Requests:
        self._times += 1
        asking = [each.name for each in pod.containers if RESOURCE in each.limits]
        return {name: {FPGA.name: FpgaRequest(self._times)} for name in asking} or None


class ChangesThePod(FpgaScheduler):
    @hookimpl
    def partage_requests(self, pod: Pod) -> Requests:
        pod.annotations["seen"] = "yes"  # type: ignore[index]
        return super().partage_requests(pod)


def _asking(pod: Pod, text: str) -> Pod:
    container = type(pod.containers[0])(name=ContainerName("main"), limits={RESOURCE: text})
    return Pod(ref=pod.ref, containers=(container,))
