"""No manifest of another system silently runs without its card: it is honoured, or a message says what to change.

The manifests in `foreign/` are typical for users of those systems. Each is explained twice: unchanged, for the
scheduler that it names, and with `schedulerName` changed to ours. All settings have their defaults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import msgspec.yaml
import pytest

from partage_base.kube import ApiServer
from partage_cli.audit import of_words
from partage_cli.audit.observation import SeenCluster, seen_pods
from partage_cli.audit.requests import Readings
from partage_cli.explain.question import Answer, Question, answer
from partage_cli.translate.manifests import as_kept
from partage_plugins.api import GPU
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from partage_scheduler.objects import ApiPod
from partage_scheduler.sharepods.manifest import pod_of
from partage_scheduler.sharepods.objects import SharePod
from support.dialect_rows import all_plugins
from support.fake_api import FakeApi
from support.kube import access_to
from support.objects import NAMESPACE, OURS
from support.scheduler_stage import add_node
from support.scheduling import PODS

FILES: Final = {file.stem: file for file in Path(__file__).with_name("foreign").glob("*.yaml")}
SHAREPODS: Final = ("kubeshare-sharepod-by-hand",)
"""Systems whose pods our scheduler takes unchanged."""
HONOURED: Final = {
    "kubeshare-1": "kubeshare/gpu_request",
    "kubeshare-2": "sharedgpu/gpu_limit",
    "volcano-memory": "volcano.sh/vgpu-memory",
    "volcano-cores": "volcano.sh/vgpu-cores",
    "kubegpu": "pod.alpha/DeviceInformation",
    "kai-fraction": "gpu-fraction",
    "kai-memory": "gpu-memory",
    "kai-several-cards": "gpu-fraction-num-devices",
}
"""Systems honoured by our scheduler, with the key named in messages about pods of another scheduler."""
IN_OURS: Final = "Ask for partage.dev/gpu-milli and partage.dev/gpu-memory in a container's limits instead"
WHOSE: Final = "where the operator sets PARTAGE_NVIDIA_GPU (the chart's nvidiaGpu) to"
TOLD: Final = {
    "hami-number": ("nvidia.com/gpu", f"partage reads nvidia.com/gpu {WHOSE} whole or hami"),
    "hami-memory-cores": ("nvidia.com/gpumem", f"HAMi's words are read {WHOSE} hami"),
    "hami-percentage": ("nvidia.com/gpumem-percentage", f"HAMi's words are read {WHOSE} hami"),
    "device-plugin": ("nvidia.com/gpu", f"partage reads nvidia.com/gpu {WHOSE} whole or hami"),
    "time-slicing": ("nvidia.com/gpu.shared", f"Only a device plugin on a node gives these. {IN_OURS}"),
    "mig": ("nvidia.com/mig-1g.10gb", f"Only a device plugin on a node gives these. {IN_OURS}"),
    "aliyun": ("aliyun.com/gpu-mem", IN_OURS),
    "koordinator": ("koordinator.sh/gpu-memory-ratio", IN_OURS),
    "tkestack": ("tencent.com/vcuda-core", IN_OURS),
    "vgpu-manager": ("nvidia.com/vgpu-cores", IN_OURS),
    "nos": ("nvidia.com/gpu-10gb", IN_OURS),
    "runai-variables": ("RUNAI_GPU_MEMORY_LIMIT", "no memory is lent above that"),
}
"""Unsupported parts, and the advice."""
REFUSED: Final = {
    "runai-annotations": ("gpu-fraction-limit is '0.8'", "allowed: as much as gpu-fraction"),
    "kubeshare-sharepod": ("exclusion: container trainer asks for 500 milli", "PARTAGE_GPU_EXCLUSION_NAMESPACES"),
}
CLAIMS: Final = ("dra-claim",)


def manifest(name: str, *, scheduler: str = "") -> dict[str, Any]:
    """The manifest as the API server stores it; for a SharePod, its pod."""
    written = msgspec.yaml.decode(FILES[name].read_bytes(), type=dict[str, Any])
    written["metadata"] |= {"namespace": NAMESPACE, "uid": name}
    if written["kind"] == "SharePod":
        written = pod_of(msgspec.convert(written, SharePod), scheduler=OURS)
    spec: dict[str, Any] = {"schedulerName": "default-scheduler"}
    spec |= msgspec.convert(as_kept(written["spec"]), dict[str, Any])
    spec |= {"schedulerName": scheduler} if scheduler else {}
    return {**written, "spec": spec, "status": {"phase": "Pending"}}


async def explained(api: FakeApi, root: Path, pod: dict[str, Any]) -> Answer:
    """The explanation in a cluster with one node of two cards."""
    add_node(api, "n1")
    api.objects.create(PODS, pod)
    question = Question(namespace=NAMESPACE, name=pod["metadata"]["name"], partage="partage-system", root=root)
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        return await answer(server, question)


def audited(pod: dict[str, Any], *, node: str = "") -> str:
    """The findings of `partage audit` about the pod, pending or bound to `node`."""
    of_api = msgspec.convert({**pod, "spec": {**pod["spec"], "nodeName": node}}, ApiPod)
    cluster = SeenCluster(pods=tuple(seen_pods([of_api], (GPU,), {})), nodes={})
    readings = Readings([OURS])
    readings.add(cluster, OURS, SchedulerFramework(all_plugins(), Ledger()))
    return "\n".join(f"{each.found}: {each.advice}" for each in of_words.words(cluster, readings) if each.advice)


def test_every_manifest_has_its_answer() -> None:
    assert {*SHAREPODS, *HONOURED, *TOLD, *REFUSED, *CLAIMS} == FILES.keys()


@pytest.mark.parametrize("name", [*SHAREPODS, *HONOURED])
async def test_it_gets_its_cards_by_our_scheduler(name: str, api: FakeApi, tmp_path: Path) -> None:
    found = await explained(api, tmp_path, manifest(name, scheduler=OURS))
    assert found.pod.message == "it fits, and would go to n1 now"
    assert found.unread == ""


@pytest.mark.parametrize("name", HONOURED)
async def test_what_it_is_to_name_is_said_where_it_names_another_scheduler(
    name: str, api: FakeApi, tmp_path: Path
) -> None:
    pod = manifest(name)
    found = await explained(api, tmp_path, pod)
    assert found.pod.message.endswith(f"set schedulerName: {OURS} in what it is made from: it would go to n1 now")
    said = audited(pod)
    assert HONOURED[name] in said
    assert f"name {OURS} in schedulerName" in said


@pytest.mark.parametrize("name", [name for name in HONOURED if not name.startswith("volcano")])
def test_one_that_another_scheduler_let_run_without_a_card_is_found(name: str) -> None:
    """Volcano uses resources, without which no pod runs."""
    said = audited(manifest(name), node="n1")
    assert HONOURED[name] in said
    assert f"name {OURS} in schedulerName" in said


@pytest.mark.parametrize("scheduler", ["", OURS])
@pytest.mark.parametrize("name", TOLD)
async def test_the_word_that_is_not_read_is_named_with_the_way_out(
    name: str, scheduler: str, api: FakeApi, tmp_path: Path
) -> None:
    pod = manifest(name, scheduler=scheduler)
    found = await explained(api, tmp_path, pod)
    word, way_out = TOLD[name]
    assert word in found.unread
    assert way_out in found.unread
    if not scheduler:
        assert word in audited(pod)
        assert way_out in audited(pod)


@pytest.mark.parametrize("scheduler", ["", OURS])
@pytest.mark.parametrize("name", REFUSED)
async def test_what_partage_does_not_do_is_refused_by_its_key(
    name: str, scheduler: str, api: FakeApi, tmp_path: Path
) -> None:
    found = await explained(api, tmp_path, manifest(name, scheduler=scheduler))
    assert all(words in found.pod.message for words in REFUSED[name])


@pytest.mark.parametrize("name", CLAIMS)
async def test_a_claim_is_left_to_who_allocates_claims(name: str, api: FakeApi, tmp_path: Path) -> None:
    found = await explained(api, tmp_path, manifest(name))
    assert (found.pod.state, "waiting for a resource claim" in found.pod.message) == ("waits", True)


@pytest.mark.parametrize("name", CLAIMS)
async def test_a_scheduler_that_allocates_no_claims_says_who_does(name: str, api: FakeApi, tmp_path: Path) -> None:
    found = await explained(api, tmp_path, manifest(name, scheduler=OURS))
    assert "pod has resource claims (DRA), which this scheduler does not allocate: let kube-scheduler" in (
        found.pod.message
    )
