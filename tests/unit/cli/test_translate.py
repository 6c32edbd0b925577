"""`partage translate`: other systems' manifests become native ones with the same meaning, or the obstacle is named."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec.yaml
import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own

from partage_cli.translate.manifests import translate, translate_to_claims, translate_to_variables
from partage_cli.translate.native import unsaid
from partage_oci.words import CONTAINER, asked_of
from partage_plugins.api import GPU, Pod, PodRequest
from partage_plugins.api.gpu import MIB
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.errors import Refused
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from support.dialect_rows import FILES, Row, all_plugins, rows_of
from unit.cli.program import partage

FOREIGN: Final = [file for file in FILES if file.stem != "native"]
ASKING: Final = [
    pytest.param(row, id=f"{file.stem}: {row.name}") for file in FOREIGN for row in rows_of(file) if row.request
]
KUBESHARE: Final = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0", "kubeshare/gpu_mem": "1073741824"}
TEMPLATE: Final = {"metadata": {"annotations": KUBESHARE}, "spec": {"containers": [{"name": "cuda", "image": "i"}]}}
NO_MEMORY: Final = """
kind: Pod
metadata: {name: a, annotations: {kubeshare/gpu_request: "0.5", kubeshare/gpu_limit: "1", kubeshare/gpu_mem: "0"}}
spec: {containers: [{name: a}]}
"""
LIMITS: Final = {"partage.dev/gpu-milli": "500", "partage.dev/gpu-memory": "1Gi"}


@cache
def framework(nvidia_gpu: str, blocked: str = "") -> SchedulerFramework:
    return SchedulerFramework(all_plugins(PARTAGE_NVIDIA_GPU=nvidia_gpu, PARTAGE_PLUGINS_BLOCK=blocked), Ledger())


def native_alone(pod: Pod) -> PodRequest:
    return framework("kubelet", ",".join(f"{file.stem}-dialect" for file in FOREIGN)).asked(pod)


@pytest.mark.parametrize("row", ASKING)
def test_a_pod_asks_for_the_same_where_only_the_native_dialect_is_read(row: Row) -> None:
    """Or it is refused: other systems can express what ours can't."""
    pod, reads = deepcopy(row.manifest), framework(row.nvidia_gpu).asked
    try:
        done = translate(pod, reads, scheduler="partage-scheduler")
    except Refused:
        return
    assert done is not None
    made = native_alone(Row(name=row.name, pod=pod, request={}).read())
    assert (made == reads(row.read())) != bool(done.notes)
    assert unsaid(reads(row.read()), made) is None


@pytest.mark.parametrize("row", [each for each in ASKING if str(each.id).startswith("kubeshare")])
def test_all_that_kubeshare_says_has_words_of_ours_but_that_a_pod_gets_no_memory(row: Row) -> None:
    pod, reads = deepcopy(row.manifest), framework(row.nvidia_gpu).asked
    if any(ask.memory_bytes == 0 for ask in reads(row.read()).of(GPU).values()):
        with pytest.raises(Refused, match=r"partage\.dev/ has no words for memory_bytes 0"):
            translate(pod, reads, scheduler="partage-scheduler")
    else:
        done = translate(pod, reads, scheduler="partage-scheduler")
        assert done is not None
        assert done.notes == []


def told(tmp_path: Path, *documents: dict[str, Any], code: int = 0) -> tuple[list[Any], list[str]]:
    """The printed documents, and the lines on stderr."""
    file = tmp_path / "pods.yaml"
    file.write_bytes(b"---\n".join(map(msgspec.yaml.encode, documents)))
    done = partage(tmp_path, "translate", str(file))
    assert done.returncode == code, done.stderr
    return list(yaml.safe_load_all(done.stdout)), done.stderr.splitlines()


def said(tmp_path: Path, *documents: dict[str, Any]) -> list[Any]:
    return told(tmp_path, *documents)[0]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", ("template",)),
        ("Job", ("template",)),
        ("CronJob", ("jobTemplate", "spec", "template")),
    ],
)
def test_templates_are_translated_where_they_stand(kind: str, path: tuple[str, ...], tmp_path: Path) -> None:
    spec: dict[str, Any] = TEMPLATE
    for step in reversed(path):
        spec = {step: spec}
    (found,) = said(tmp_path, {"kind": kind, "metadata": {"name": "a"}, "spec": {"replicas": 2, **spec}})
    assert found["spec"].pop("replicas") == 2
    template = found["spec"]
    for step in path:
        template = template[step]
    (container,) = template["spec"]["containers"]
    assert template["metadata"]["annotations"] == {"partage.dev/policy": "kubeshare"}
    assert container["resources"] == {"limits": LIMITS}
    assert template["spec"]["schedulerName"] == "partage-scheduler"


def test_what_asks_in_no_other_dialect_stays_as_it_is(tmp_path: Path) -> None:
    native = {"kind": "Pod", "spec": {"containers": [{"name": "a", "resources": {"limits": LIMITS}}]}}
    plain = {"kind": "Pod", "metadata": {"labels": None}, "spec": {"containers": [{"name": "a"}]}}
    other = {"kind": "ConfigMap", "data": {"kubeshare/gpu_limit": "1.0"}}
    assert said(tmp_path, native, plain, other) == [native, plain, other]


def test_what_was_done_with_each_document_is_told(tmp_path: Path) -> None:
    kai = {"annotations": {"gpu-fraction": "0.5"}, "name": "half"}
    _, lines = told(
        tmp_path,
        {"kind": "Pod", "metadata": kai, "spec": {"containers": [{"name": "a"}]}},
        {
            "kind": "List",
            "items": [{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": TEMPLATE}}],
        },
        {
            "kind": "Pod",
            "metadata": {"name": "n"},
            "spec": {"containers": [{"name": "a", "resources": {"limits": LIMITS}}]},
        },
        {"kind": "Pod", "metadata": {"name": "none"}, "spec": {"containers": [{"name": "a"}]}},
        {"kind": "SharePod", "metadata": {"name": "s", "annotations": KUBESHARE}, "spec": {}},
        {"kind": "ConfigMap", "metadata": {"name": "c"}},
    )
    keys = ", ".join(KUBESHARE)
    assert lines == [
        "Pod half: gpu-fraction said in the native dialect; placed by partage-scheduler",
        f"Deployment web: {keys} said in the native dialect; placed by partage-scheduler",
        "Pod n: asks in the native dialect; unchanged",
        "Pod none: asks for no card in any dialect that is read here; unchanged",
        "SharePod s: partage-sharepods makes its pod; unchanged",
        "ConfigMap c: has no pod; unchanged",
    ]


def test_words_that_are_not_read_here_are_named_with_their_system(tmp_path: Path) -> None:
    def asking(name: str, resource: str) -> dict[str, Any]:
        container = {"name": "a", "resources": {"limits": {resource: 3}}}
        return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}

    hami, aliyun, plain = (asking(each, each) for each in ("nvidia.com/gpumem", "aliyun.com/gpu-mem", "nvidia.com/gpu"))
    made, lines = told(tmp_path, hami, aliyun, plain, code=1)
    assert made == [hami, aliyun, plain]
    assert "HAMi's words are read where the operator sets PARTAGE_NVIDIA_GPU" in lines[0]
    assert "aliyun.com/gpu-mem is a word of Aliyun gpushare's and is not read here" in lines[1]
    assert "partage reads nvidia.com/gpu where the operator sets PARTAGE_NVIDIA_GPU" in lines[2]


@pytest.mark.parametrize("to", ["native", "dra"])
def test_what_a_pod_says_in_vain_beside_what_is_translated_is_told(to: str, tmp_path: Path) -> None:
    variable = {"name": "RUNAI_GPU_MEMORY_LIMIT", "value": "0.8"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "grows", "annotations": {"gpu-memory": "2000"}},
        "spec": {"containers": [{"name": "a", "env": [variable]}]},
    }
    file = tmp_path / "pods.yaml"
    file.write_bytes(msgspec.yaml.encode(pod))
    done = partage(tmp_path, "translate", "--to", to, str(file))
    assert done.returncode == 0, done.stderr
    assert "Pod grows: not all that this pod says of cards is read: the variable RUNAI_GPU_MEMORY_LIMIT" in done.stderr


def test_a_file_of_which_nothing_is_known_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    plain = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}
    made, lines = told(tmp_path, plain, code=1)
    assert made == [plain]
    assert lines == ["Pod a: asks for no card in any dialect that is read here; unchanged"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: Pod\nspec: []", "allowed: metadata and spec with fields"),
        ("kind: Pod\nspec: {containers: [a]}", "manifest: a template's pod is no pod"),
        (
            "kind: Pod\nmetadata: {name: a, labels: {sharedgpu/gpu_limit: NaN}}\nspec: {containers: [{name: a}]}",
            "sharedgpu/gpu_limit is 'NaN'",
        ),
        (
            NO_MEMORY,
            "pod a: partage.dev/ has no words for memory_bytes 0, which a asks for",
        ),
        ("- a", "manifest: $ is a list"),
    ],
)
def test_what_can_not_be_translated_is_said_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    done = partage(tmp_path, "translate", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


EVERY: Final = [
    pytest.param(row, id=f"{file.stem}: {row.name}") for file in FILES for row in rows_of(file) if row.request
]


@pytest.mark.parametrize("row", EVERY)
def test_claims_have_what_a_pod_asked_for_in_whichever_dialect(row: Row) -> None:
    """Or it is refused: kube-scheduler can't express much of what ours can."""
    pod, reads = deepcopy(row.manifest), framework(row.nvidia_gpu).asked
    try:
        claimed = translate_to_claims(pod, {"name": "a"}, reads)
    except Refused:
        return
    assert claimed is not None
    assert not reads(Row(name=row.name, pod=pod, request={}).read()).asking
    wanted = reads(row.read())
    users = [
        container["name"]
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
        if "claims" in container.get("resources", {})
    ]
    assert set(users) == set(wanted.asking)
    assert len(claimed.templates) == len(wanted.of(GPU))
    for ask, template in zip((ask for _, ask in sorted(wanted.of(GPU).items())), claimed.templates, strict=True):
        requests = template["spec"]["spec"]["devices"]["requests"]
        amounts = [each["exactly"].get("capacity", {"requests": {}})["requests"] for each in requests]
        assert sum(each["exactly"].get("count", 1) for each in requests) == ask.count
        assert {each.get("share", "1000") for each in amounts} == {str(ask.share_milli)}
        if ask.memory_bytes is not None:
            assert {parse_whole_quantity(each["memory"]) - ask.memory_bytes < MIB for each in amounts} == {True}


def test_with_claims_kube_scheduler_places_and_templates_stand_before_who_uses_them(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    job = {"kind": "Job", "metadata": {"name": "j", "namespace": "n"}, "spec": {"template": deepcopy(TEMPLATE)}}
    job["spec"]["template"]["spec"]["schedulerName"] = "kubeshare-scheduler"  # type: ignore[index]
    file.write_bytes(msgspec.yaml.encode(job))
    done = partage(tmp_path, "translate", "--to", "dra", str(file))
    assert done.returncode == 0
    assert "is placed in kube-scheduler's order, not by the policy kubeshare" in done.stderr
    template, made = yaml.safe_load_all(done.stdout)
    assert template["metadata"] == {"name": "j-cuda", "namespace": "n"}
    spec = made["spec"]["template"]["spec"]
    assert "schedulerName" not in spec
    assert spec["resourceClaims"] == [{"name": "cuda", "resourceClaimTemplateName": "j-cuda"}]


def test_what_claims_cannot_say_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    meta = {"name": "a", "annotations": {"partage.dev/exclusion": "x"}}
    file.write_bytes(
        msgspec.yaml.encode(
            {"kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "a", "resources": {"limits": LIMITS}}]}}
        )
    )
    done = partage(tmp_path, "translate", "--to", "dra", str(file))
    assert done.returncode != 0
    assert "claims have no words for affinity, anti-affinity and exclusion; leave the pod to" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("row", EVERY)
def test_by_variables_each_container_asks_the_agent_for_what_it_asked_for(row: Row) -> None:
    """Or it is refused: a machine has no equivalent for what containers share, nor for one container's annotations."""
    pod, reads = deepcopy(row.manifest), framework(row.nvidia_gpu).asked
    wanted = reads(row.read())
    try:
        done = translate_to_variables(pod, reads)
    except Refused:
        return
    assert done is not None
    made = dict[str, object]()
    for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
        said = asked_of([f"{each['name']}={each['value']}" for each in container.get("env", ())], {})
        if said is not None:
            made[container["name"]] = native_alone(said.pod("5" * 64, memory_bytes=None)).of(GPU)[CONTAINER]
    assert made.keys() == set(wanted.asking)
    for name, ask in wanted.of(GPU).items():
        fields = ("count", "share_milli", "limit_milli", "memory_bytes")
        assert [getattr(made[name], each) for each in fields] == [getattr(ask, each) for each in fields]


def test_for_podman_a_pod_has_variables_and_no_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    container = {"name": "a", "resources": {"limits": LIMITS}, "env": [{"name": "PARTAGE_SHARE", "value": "1"}]}
    spec = {"schedulerName": "partage-scheduler", "containers": [container]}
    file.write_bytes(msgspec.yaml.encode({"kind": "Pod", "metadata": {"name": "a"}, "spec": spec}))
    done = partage(tmp_path, "translate", "--to", "podman", str(file))
    assert done.returncode == 0, done.stderr
    made = yaml.safe_load(done.stdout)["spec"]
    assert made["containers"][0]["env"] == [
        {"name": "PARTAGE_SHARE", "value": "500"},
        {"name": "PARTAGE_MEMORY", "value": "1Gi"},
    ]
    assert "schedulerName" not in made
