"""A pod of ours whose requests are not read never runs without a card silently: one event lists what was not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partage_plugins.api.keys import GPU_MILLI, LIMIT_MILLI
from partage_scheduler.objects import ApiPod
from support.fake_api import FakeApi
from support.kube import until
from support.objects import NAMESPACE, node_body
from support.scheduler_stage import NODES, add_node, add_pod, scheduler, settings_below, unbound

EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"


def told(api: FakeApi) -> dict[str, list[str]]:
    """The messages about each pod, by its name."""
    found: dict[str, list[str]] = {}
    for each in api.objects.select(EVENTS, {}):
        if each["reason"] == "RequestNotRead":
            assert each["type"] == "Warning"
            found.setdefault(each["involvedObject"]["name"], []).append(each["message"])
    return found


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        (
            {"annotations": {"kubeshare/gpu_requst": "0.5"}},
            (
                "this pod says something of cards and asks for none: kubeshare/gpu_requst is no word of KubeShare's "
                "(did you mean kubeshare/gpu_request?). A pod asks by the annotations kubeshare/gpu_request, gpu_limit "
                "and gpu_mem"
            ),
        ),
        (
            {"annotations": {LIMIT_MILLI: "800"}},
            (
                "this pod says something of cards and asks for none: partage.dev/limit-milli asks for nothing by "
                "itself. Cards are asked for in a container's limits, by partage.dev/gpu-milli or "
                "partage.dev/gpu-memory"
            ),
        ),
        (
            {"annotations": {"gpu-mili": "500"}},
            "gpu-mili is no word of partage's (did you mean partage.dev/gpu-milli?)",
        ),
        ({"annotations": {"gpu-fracton": "0.5"}}, "gpu-fracton is no word of KAI's (did you mean gpu-fraction?)"),
        ({"labels": {"gpu-fraction": "0.5"}}, "gpu-fraction is read in annotations, not in labels"),
        ({"labels": {GPU_MILLI: "500"}}, "partage.dev/gpu-milli is read in limits, not in labels"),
        ({"annotations": {"sharedgpu/gpu_limit": "1.0"}}, "sharedgpu/gpu_limit is read in labels, not in annotations"),
        ({"annotations": {"aliyun.com/gpu-mem": "3"}}, "aliyun.com/gpu-mem is a word of Aliyun gpushare's"),
        (
            {"annotations": {"tencent.com/vcuda-core-limit": "3"}},
            "tencent.com/vcuda-core-limit asks for nothing by itself",
        ),
        ({"labels": {"koordinator.sh/gpu-model": "x"}}, "koordinator.sh/gpu-model is no word of Koordinator's"),
        ({"annotations": {"pod.alpha/DeviceInfo": "{}"}}, "did you mean pod.alpha/DeviceInformation?"),
        ({"annotations": {"hami.io/gpu-schedule-policy": "spread"}}, "did you mean hami.io/gpu-scheduler-policy?"),
    ],
)
async def test_a_pod_that_runs_without_a_card_is_told_why(
    api: FakeApi, tmp_path: Path, meta: dict[str, Any], words: str
) -> None:
    add_node(api, "n1")
    add_pod(api, "p", **meta)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api) and bool(told(api)))
    ((note,),) = told(api).values()
    assert words in note


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("aliyun.com/gpu-mem", "aliyun.com/gpu-mem is a word of Aliyun gpushare's and is not read here. Ask for"),
        ("tencent.com/vcuda-core", "is a word of tkestack's gpu-manager's and is not read here"),
        ("koordinator.sh/gpu-core", "is a word of Koordinator's and is not read here"),
        ("nvidia.com/vgpu-number", "is a word of vgpu-manager's and is not read here"),
        (
            "nvidia.com/gpumem",
            "HAMi's words are read where the operator sets PARTAGE_NVIDIA_GPU (the chart's nvidiaGpu)",
        ),
        ("nvidia.com/gpu", "partage reads nvidia.com/gpu where the operator sets PARTAGE_NVIDIA_GPU"),
        ("volcano.sh/vgpu-numbr", "did you mean volcano.sh/vgpu-number?"),
    ],
)
async def test_a_pod_that_waits_for_what_no_node_has_is_told_whose_word_that_is(
    api: FakeApi, tmp_path: Path, resource: str, words: str
) -> None:
    add_node(api, "n1")
    add_pod(api, "p", limits={resource: "1"})
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: bool(told(api)))
    ((note,),) = told(api).values()
    assert words in note


async def test_who_waits_for_what_a_device_plugin_gives_is_told_nothing(api: FakeApi, tmp_path: Path) -> None:
    api.objects.create(NODES, node_body("n1", **dict[str, Any]({"nvidia.com/gpu": "1"})))
    add_pod(api, "p", limits={"nvidia.com/gpu": "2"})
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: running.parts.figures.attempts["unschedulable"] >= 1)
        add_pod(api, "later", limits={"nvidia.com/gpumem": "1"})
        await until(lambda: bool(told(api)))
    assert told(api).keys() == {"later"}


async def test_words_of_a_dialect_that_is_switched_off_are_told_as_well(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTAGE_PLUGINS_BLOCK", "kai-dialect")
    add_node(api, "n1")
    add_pod(api, "p", annotations={"gpu-fraction": "0.5"})
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api) and bool(told(api)))
    ((note,),) = told(api).values()
    assert "gpu-fraction is a word of KAI's and is not read here. The operator switched kai-dialect off" in note


async def test_it_is_told_once_however_often_the_pod_is_tried(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_node(api, "n1")
    add_pod(api, "p", limits={"aliyun.com/gpu-mem": "3"})
    reasons: list[str] = []
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: running.parts.figures.attempts["unschedulable"] >= 1 and bool(told(api)))
        failed = running.parts.events.failed

        def counted(pod: ApiPod, why: str, *, reason: str = "FailedScheduling") -> None:
            reasons.append(reason)
            failed(pod, why, reason=reason)

        monkeypatch.setattr(running.parts.events, "failed", counted)
        for name in ("n2", "n3"):
            before = len(reasons)
            add_node(api, name)
            await until(lambda before=before: len(reasons) > before)  # type: ignore[misc]
    assert set(reasons) == {"FailedScheduling"}
    ((_,),) = told(api).values()


async def test_who_gets_what_he_asks_for_or_says_nothing_of_cards_is_told_nothing(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    add_pod(api, "asks", 500)
    add_pod(api, "none", annotations={"example.com/gpu": "1", "note": "my gpu pod"}, labels={"app": "web"})
    add_pod(api, "leads", annotations={"partage.dev/gang": "g", "partage.dev/gang-size": "1"})
    add_pod(
        api, "zero", labels={"sharedgpu/gpu_limit": "0.0", "sharedgpu/gpu_request": "0.0", "sharedgpu/priority": "0"}
    )
    add_pod(api, "kai", annotations={"gpu-fraction": "0.2", "nvidia.com/container.main.gpus.devices": "GPU-0"})
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: not unbound(api))
        await until(lambda: not running.parts.worker.in_flight)
    assert not told(api)


async def test_what_is_misspelt_beside_a_request_is_told_as_well(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    kubeshare = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0", "kubeshare/gpu_mem": "1073741824"}
    add_pod(api, "p", annotations={**kubeshare, "kubeshare/sched_exclusin": "x"})
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api) and bool(told(api)))
    ((note,),) = told(api).values()
    assert note.startswith("not all that this pod says of cards is read: kubeshare/sched_exclusin is no word of")
