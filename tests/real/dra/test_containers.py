"""Contents of a container with a claim, whatever its pod specifies; without its CDI file it does not start."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from partage_base.cri import PodResources, ServedContainer, UnaryClient
from partage_plugins.api.claims import CLAIM_KIND
from rig.client.manifests import a_container
from rig.client.pods import Pod
from support.claim_objects import devices, request
from support.dra_stage import DraStage
from support.isolation_stage import IMAGE, SERVING, ask, seen

MIB_OF_GIB = 1024
POD_RESOURCES = "/var/lib/kubelet/pod-resources/kubelet.sock"
VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}]}
ENVIRONMENT = ("/bin/sh", "-c", "tr '\\0' '\\n' < /proc/1/environ")


def cards_in(pod: Pod, container: str = "main") -> list[str]:
    """Device nodes of cards in the container."""
    names = pod.exec("/bin/ls", "/dev", container=container).split()
    return [name for name in names if name.startswith("nvidia") and name[-1].isdigit()]


def served(stage: DraStage) -> Sequence[ServedContainer]:
    """The answer of kubelet about the devices of all containers."""

    async def asked() -> Sequence[ServedContainer]:
        with closing(UnaryClient(stage.machine.path(POD_RESOURCES))) as client:
            return await PodResources(client).served()

    return asyncio.run(asked())


def test_a_container_that_names_no_claim_of_its_pod_has_no_card(stage: DraStage) -> None:
    containers = [a_container(name, image=IMAGE, command=SERVING) for name in ("with", "without")]
    pod = stage.pod("two", containers=containers).wait_running()
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
    assert len(cards_in(pod)) == 1


@pytest.mark.extended("what kubelet does by itself: a claim is one budget, whatever its containers name of it")
def test_containers_that_name_one_request_each_have_all_of_the_claim_and_kubelet_says_so(stage: DraStage) -> None:
    spec = devices(*(request(200, "1Gi", name=name) for name in "ab"))
    spec["devices"]["constraints"] = [{"distinctAttribute": "gpu.partage.dev/uuid"}]
    stage.claim("both", spec)
    named = {name: {"resources": {"claims": [{"name": "gpu", "request": name}]}} for name in "ab"}
    containers = [a_container(name, image=IMAGE, command=SERVING, more=more) for name, more in named.items()]
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "both"}]}
    pod = stage.create_pod("two", containers=containers, spec=claims).wait_running()
    assert [len(cards_in(pod, name)) for name in "ab"] == [2, 2]
    told = {each.container: {one.device for one in each.given} for each in served(stage) if each.pod == "two"}
    names = {device["name"] for device in stage.devices()}
    assert {name: given & names for name, given in told.items()} == {"a": names, "b": names}


@pytest.mark.parametrize("place", ["/run/partage/lib", "/run", "/etc", "/usr/lib"])
def test_a_volume_over_our_places_gives_nothing_beyond_limits(stage: DraStage, place: str) -> None:
    """Without crishim and admission: either our files are mounted over it, or the broker stops the container."""
    mounts: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": place}]}
    pod = stage.pod("covering", devices(request(300, "1Gi")), more=mounts, spec=VOLUMES)
    pod.wait(
        "it runs or was stopped", lambda now: None if now["status"]["phase"] in {"Running", "Failed"} else "neither"
    )
    assert "took 2000" not in pod.tried(SERVING[0], "ask", "take 2000").out


def test_without_its_file_no_container_of_a_claim_starts(stage: DraStage) -> None:
    uid = stage.claim("file", devices(request(300, "1Gi")))
    stage.pod("file-a", claim="file").wait_running()
    (file,) = stage.cdi.glob(f"*share_{uid}.json")
    kept = file.read_bytes()
    file.unlink()
    second = stage.pod("file-b", claim="file", node=stage.node.name)
    second.wait_event(f"unresolvable CDI devices {CLAIM_KIND}={uid}")
    file.write_bytes(kept)
    second.wait_running()
    assert ask(second, "take 2000") != "took 2000"
