"""What is in a container with a claim, whatever its pod says; and that without its CDI file it does not start."""

from __future__ import annotations

from typing import Any

import pytest

from partage_plugins.vocabulary.claims import CLAIM_KIND
from rig.client.manifests import a_container
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
