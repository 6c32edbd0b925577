"""What is in a container with a claim, whatever its pod says; and that without its CDI file it does not start."""

from __future__ import annotations

from typing import Any

import pytest

from partage_base.cri import PodResources, UnaryClient
from partage_plugins.vocabulary.claims import CLAIM_KIND, DRIVER
from rig.client.manifests import a_container, a_pod
from rig.client.resources import Json
from rig.identity.people import TEAM
from support.dra_stage import DraStage, devices, request
from support.isolation_stage import IMAGE, SERVING, ask, seen

MIB_OF_GIB = 1024
VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}]}
ENVIRONMENT = ("/bin/sh", "-c", "tr '\\0' '\\n' < /proc/1/environ")


def test_a_container_that_names_no_claim_of_its_pod_has_no_card(stage: DraStage) -> None:
    containers = [a_container(name, image=IMAGE, command=SERVING) for name in ("with", "without")]
    pod = stage.pod("two", containers=containers)
    pod.wait_running()
    assert seen(pod, "with")["total"] == MIB_OF_GIB
    assert pod.tried("/bin/ls", "/run/partage", container="without").status != 0
    assert "nvidiactl" not in pod.exec("/bin/ls", "/dev", container="without")


def test_a_pod_s_own_variable_brings_no_other_card(stage: DraStage) -> None:
    pod = stage.pod(
        "greedy",
        env={"NVIDIA_VISIBLE_DEVICES": "all"},
    )
    pod.wait_running()
    assert "NVIDIA_VISIBLE_DEVICES=void" in pod.exec(*ENVIRONMENT)
    assert len([name for name in pod.exec("/bin/ls", "/dev").split() if name[-1].isdigit() and "nvidia" in name]) == 1


@pytest.mark.parametrize("place", ["/run/partage/lib", "/run", "/etc", "/usr/lib"])
def test_a_volume_over_our_places_gives_nothing_beyond_limits(stage: DraStage, place: str) -> None:
    """Without crishim and admission: either our files are on top of it, or the broker stops the container."""
    mounts: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": place}]}
    pod = stage.pod("covering", devices(request(300, "1Gi")), more=mounts, spec=VOLUMES)
    pod.wait(
        "it runs or was stopped", lambda now: None if now["status"]["phase"] in {"Running", "Failed"} else "neither"
    )
    assert "took 2000" not in pod.tried(SERVING[0], "ask", "take 2000").out


def test_without_its_file_no_container_of_a_claim_starts(stage: DraStage) -> None:
    uid = stage.claim("file", devices(request(300, "1Gi")))
    first = stage.pod("file-a", claim="file")
    first.wait_running()
    (file,) = stage.cdi.glob(f"*share_{uid}.json")
    kept = file.read_bytes()
    file.unlink()
    second = stage.pod("file-b", claim="file", node=stage.node.name)
    stage.wait_said(second, f"unresolvable CDI devices {CLAIM_KIND}={uid}")
    file.write_bytes(kept)
    second.wait_running()
    assert ask(second, "take 2000") != "took 2000"


@pytest.mark.extended("what kubelet does by itself; nothing of ours rests on it")
def test_a_second_pod_of_a_claim_starts_without_a_call_of_kubelet(stage: DraStage) -> None:
    """So nothing about a pod can be known from prepares: who may use a claim is seen in its container."""
    stage.claim("named", devices(request(300, "1Gi")))
    stage.pod("named-a", claim="named").wait_running()
    before = stage.prepares()
    second = stage.pod("named-b", claim="named")
    second.wait_running()
    assert stage.prepares() == before
    assert ask(second, "take 2000") != "took 2000"


@pytest.mark.extended("what kubelet does by itself; nothing of ours rests on it")
async def test_kubelet_s_list_names_every_request_of_a_claim_for_each_container(stage: DraStage) -> None:
    """So what a container has of a claim is never read there."""
    both = devices(request(100, "1Gi", name="a"), request(100, "1Gi", name="b"))
    both["devices"]["constraints"] = [{"distinctAttribute": f"{DRIVER}/uuid"}]
    stage.claim("requests", both)
    containers = [
        a_container(name, image=IMAGE, command=SERVING, more=using("gpu", request=name)) for name in ("a", "b")
    ]
    claims = [{"name": "gpu", "resourceClaimName": "requests"}]
    pod = stage.rig.cluster.pods.create(TEAM, a_pod("requests", containers=containers, spec={"resourceClaims": claims}))
    pod.wait_running()
    client = UnaryClient(stage.root / "var/lib/kubelet/pod-resources/kubelet.sock")
    try:
        served = [each for each in await PodResources(client).served() if each.pod == "requests"]
    finally:
        client.close()
    names = {device["name"] for device in stage.devices()}
    assert {each.container: names & set(each.devices) for each in served} == {"a": names, "b": names}


def using(claim: str, **said: str) -> Json:
    return {"resources": {"claims": [{"name": claim, **said}]}}
