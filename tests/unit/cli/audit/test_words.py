"""Pods that mention cards in any form but get none are named, and no others."""

from __future__ import annotations

import pytest

from partage_cli.audit import of_words
from partage_cli.audit.observation import SeenCluster, seen_pods
from partage_cli.audit.requests import Readings
from partage_cli.doctor.findings import Severity
from partage_plugins.api import GPU
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from partage_scheduler.objects import ApiPod
from support.dialect_rows import all_plugins
from support.objects import pod

OURS = "partage-scheduler"


def seen(*pods: ApiPod) -> SeenCluster:
    return SeenCluster(pods=tuple(seen_pods(pods, (GPU,), {})), nodes={})


def read(cluster: SeenCluster) -> Readings:
    readings = Readings([OURS])
    readings.add(cluster, OURS, SchedulerFramework(all_plugins(), Ledger()))
    return readings


def found(*pods: ApiPod) -> list[str]:
    cluster = seen(*pods)
    findings = list(of_words.words(cluster, read(cluster)))
    assert all(each.check == "words" for each in findings)
    if findings[0].status is Severity.OK:
        return []
    assert {each.status for each in findings} == {Severity.WARNING}
    assert all(f"name {OURS} in schedulerName" in each.advice for each in findings)
    return [each.found for each in findings]


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            pod("v", schedulerName="volcano", limits={"volcano.sh/vgpu-number": "1"}),
            "a pod says something of cards in Volcano's words (team/v: volcano.sh/vgpu-number) and scheduler volcano",
        ),
        (
            pod("k", schedulerName="kai-scheduler", annotations={"gpu-fraction": "0.5"}),
            "in KAI's words (team/k: gpu-fraction) and scheduler kai-scheduler places it: of partage it gets none",
        ),
        (
            pod("g", schedulerName="default-scheduler", node="n", annotations={"pod.alpha/DeviceInformation": "{}"}),
            "in KubeGPU's words (team/g: pod.alpha/DeviceInformation) and scheduler default-scheduler",
        ),
        (
            pod("s", schedulerName="default-scheduler", node="n", annotations={"kubeshare/gpu_requst": "1"}),
            "(team/s: kubeshare/gpu_requst; did you mean kubeshare/gpu_request?)",
        ),
        (
            pod("h", schedulerName="hami-scheduler", limits={"nvidia.com/gpumem": "3000"}),
            "in HAMi's words (team/h: nvidia.com/gpumem) and scheduler hami-scheduler",
        ),
        (pod("n", schedulerName="default-scheduler", milli=5), "in partage's words"),
    ],
)
def test_a_pod_of_another_scheduler_is_named_with_its_words(pod: ApiPod, words: str) -> None:
    (sentence,) = found(pod)
    assert words in sentence


def test_many_pods_of_one_system_and_scheduler_are_one_finding() -> None:
    pods = [pod(f"k{n}", schedulerName="kai-scheduler", annotations={"gpu-memory": "1024"}) for n in range(9)]
    (sentence,) = found(*pods)
    assert sentence.startswith("9 pods say something of cards in KAI's words (team/k0: gpu-memory)")


def test_pods_of_ours_that_run_without_a_card_are_named_once_for_all_that_say_the_same() -> None:
    meant = {"kubeshare/gpu_requst": "0.5"}
    cluster = seen(*(pod(f"p{n}", schedulerName=OURS, node="n", annotations=meant) for n in range(3)))
    (finding,) = of_words.words(cluster, read(cluster))
    assert finding.status is Severity.WARNING
    assert finding.found.startswith("pod team/p0 and 2 more: this pod says something of cards and asks for none: ")
    assert "did you mean kubeshare/gpu_request?" in finding.found


def test_ours_those_with_an_allocation_and_those_that_run_with_what_kubelet_gives_are_not_named() -> None:
    assert not found(
        pod("ours", schedulerName=OURS, annotations={"kubeshare/gpu_requst": "1"}),
        pod("given", schedulerName="other", annotations={"gpu-fraction": "0.5", ALLOCATION: "{}"}),
        pod("kubelet", schedulerName="default-scheduler", node="n", limits={"nvidia.com/gpu": "1"}),
        pod("plain", schedulerName="default-scheduler", annotations={"app": "x"}, labels={"gpu": "yes"}),
    )
