"""`partage explain` predicts a pod's outcome from anywhere, by the scheduler's settings and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from partage_base.keyring import KeyFolders
from partage_base.kube import ApiServer
from partage_cli.explain.question import Answer, Question, answer
from partage_cli.explain.shown import as_text
from support.fake_api import FakeApi
from support.kube import access_to, until
from support.objects import pod_body
from support.scheduler_stage import LEASES, OURS, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS

READER: Final = "PARTAGE_NVIDIA_GPU"
WHOLE: Final = {"nvidia.com/gpu": "1"}
SCHEDULER: Final = "partage-scheduler"


def asked(
    root: Path, pod: dict[str, Any], *, scheduler_has: Mapping[str, str] | None = None, asker_has: str = "", **more: Any
) -> Answer:
    """Explains the pod after a scheduler with these variables led; the caller has another environment."""

    async def whole() -> Answer:
        async with FakeApi() as api, ApiServer(access_to(api.url), user_agent="test") as server:
            add_node(api, "n1")
            with pytest.MonkeyPatch.context() as environment:
                for name, text in (scheduler_has or {}).items():
                    environment.setenv(name, text)
                async with scheduler(api, settings_below(root, **more)) as running:
                    await until(lambda: running.parts.elector is not None and running.parts.elector.leads)
            with pytest.MonkeyPatch.context() as environment:
                if asker_has:
                    environment.setenv(READER, asker_has)
                api.objects.create(PODS, pod)
                return await answer(
                    server, Question(namespace="team", name="new", partage=OURS, root=root / "elsewhere")
                )

    return asyncio.run(whole())


def native(name: str = SCHEDULER, milli: int = 500) -> dict[str, Any]:
    return pod_body("new", milli=milli, schedulerName=name)


def test_a_pod_of_another_scheduler_is_not_said_to_fit(tmp_path: Path) -> None:
    found = asked(tmp_path, native("kai-scheduler"))
    assert found.pod.state == "not ours"
    assert found.pod.message == (
        "it waits for kai-scheduler, which is not ours; set schedulerName: partage-scheduler in what it is made from: "
        "it would go to n1 now"
    )
    large = asked(tmp_path, native("volcano", milli=3000))
    assert "which is not ours" in large.pod.message
    assert "it would wait: 0/1 nodes are available" in large.pod.message


def test_a_pod_whose_words_nobody_reads_is_not_said_to_get_a_card(tmp_path: Path) -> None:
    pod = pod_body("new", schedulerName="other-scheduler", annotations={"other/gpu-part": "0.5"})
    found = asked(tmp_path, pod)
    assert found.pod.message == (
        "it waits for other-scheduler, which is not ours, and asks for no card in words that partage reads; for a card "
        "ask for partage.dev/gpu-milli, and set schedulerName: partage-scheduler in what it is made from"
    )
    assert as_text(found, all_nodes=False) == f"team/new: not ours: {found.pod.message}\n"
    pod["spec"]["schedulerName"] = SCHEDULER
    assert asked(tmp_path, pod).pod.message == (
        "it fits, and would go to n1 now, without cards: it asks for no card in words that partage reads"
    )


def test_a_scheduler_of_another_name_is_known_by_its_lease(tmp_path: Path) -> None:
    found = asked(tmp_path, native("cards"), scheduler_name="cards")
    assert (found.pod.state, found.notes) == ("fits", ())
    other = asked(tmp_path, native(), scheduler_name="cards")
    assert "waits for partage-scheduler, which is not ours; set schedulerName: cards" in other.pod.message


def test_where_a_kube_scheduler_may_ask_partage_its_pods_are_counted_and_that_is_said(tmp_path: Path) -> None:
    found = asked(tmp_path, native("default-scheduler"), extender_address="127.0.0.1:0")
    assert found.pod.state == "fits"
    assert found.notes == ("default-scheduler places it, and not partage: this is how partage counts the cards for it",)


@pytest.mark.parametrize("asker_has", ["", "hami"])
def test_who_reads_a_resource_is_the_schedulers_setting_and_not_the_askers(asker_has: str, tmp_path: Path) -> None:
    pod = pod_body("new", limits=WHOLE)
    assert asked(tmp_path, pod, scheduler_has={READER: "whole"}, asker_has=asker_has).pod.state == "fits"
    found = asked(tmp_path, pod, asker_has=asker_has)
    assert found.pod.message == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_a_plugin_that_the_scheduler_does_not_load_reads_nothing(tmp_path: Path) -> None:
    pod = pod_body("new", limits={"volcano.sh/vgpu-number": "1"})
    assert asked(tmp_path, pod).pod.state == "fits"
    blocked = {"PARTAGE_PLUGINS_BLOCK": "volcano-dialect"}
    assert "Insufficient volcano.sh/vgpu-number" in asked(tmp_path, pod, scheduler_has=blocked).pod.message


def test_a_resource_that_nobody_gives_is_named_and_no_node_is_promised(tmp_path: Path) -> None:
    text = as_text(asked(tmp_path, pod_body("new", limits={"aliyun.com/gpu-mem": "3"})), all_nodes=False)
    assert text.splitlines()[-1] == "no node has aliyun.com/gpu-mem, and partage reads no such word"
    assert "would fit" not in text
    text = as_text(asked(tmp_path, pod_body("new", limits=WHOLE)), all_nodes=False)
    assert text.splitlines()[-1] == "no node has nvidia.com/gpu, and partage reads no such word"
    assert text.splitlines()[1].endswith(
        "where the operator sets PARTAGE_NVIDIA_GPU (the chart's nvidiaGpu) to whole or hami"
    )


def after_a_placing(root: Path, change: dict[str, Any], *, keys: bool) -> Answer:
    """Explains a second pod to a user without keys below the own root."""

    async def whole() -> Answer:
        async with FakeApi() as api, ApiServer(access_to(api.url), user_agent="test") as server:
            add_node(api, "n1")
            add_pod(api, "p", 1000)
            async with scheduler(api, settings_below(root)):
                await until(lambda: not unbound(api))
            api.objects.patch(LEASES + "/partage-scheduler", change)
            if keys:
                public = {each.name: each.read_text() for each in KeyFolders.at_root(root).public.iterdir()}
                there = {"metadata": {"name": "partage-keys", "namespace": OURS}, "data": {**public, "x.pub": "no key"}}
                api.objects.create(f"/api/v1/namespaces/{OURS}/configmaps", there)
            add_pod(api, "new", 1500 if keys else 500)
            return await answer(server, Question(namespace="team", name="new", partage=OURS, root=root / "elsewhere"))

    return asyncio.run(whole())


def test_allocations_are_verified_by_the_clusters_keys_and_without_any_that_is_said(tmp_path: Path) -> None:
    found = after_a_placing(tmp_path, {}, keys=True)
    assert (found.verified, found.notes) == (True, ())
    found = after_a_placing(tmp_path, {}, keys=False)
    assert found.verified is False
    (note,) = found.notes
    assert note.startswith(
        "allocations were taken as they are written: there is no public key in ConfigMap partage-system/partage-keys"
    )


def test_what_is_not_known_of_the_scheduler_is_said_in_a_line(tmp_path: Path) -> None:
    gone = {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
    (note,) = after_a_placing(tmp_path, gone, keys=True).notes
    assert note.startswith("partage-scheduler was last heard of ")
    assert note.endswith("as long as it does not run, no pod is placed")
    other = {"metadata": {"annotations": {"partage.dev/scheduler": None}}}
    assert after_a_placing(tmp_path, other, keys=True).notes == (
        "no scheduler says in namespace partage-system how it decides: this goes by the defaults",
    )


def test_another_version_and_plugins_that_are_not_here_are_said(tmp_path: Path) -> None:
    said = {
        "v": 9,
        "by": "x",
        "version": "9.9",
        "plugins": ["fpga", "gpu", "native-dialect"],
        "score_weights": ["fpga=2"],
    }
    lease = {
        "metadata": {"annotations": {"partage.dev/scheduler": msgspec.json.encode(said).decode()}},
        "spec": {"holderIdentity": "x"},
    }
    version, missing = after_a_placing(tmp_path, lease, keys=True).notes
    assert version.startswith("partage-scheduler is partage 9.9, and this is ")
    assert missing == "partage-scheduler has plugins that are not installed here, and are left out: fpga"
