"""With crishim between kubelet and its runtime, a container whose limits would not hold is not even created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rig.client.resources import DEVICE_CLASSES, RESOURCE_SLICES
from rig.rig import Rig
from support.claim_objects import CLASS, device_class, devices, request
from support.crishim_stage import INVENTORY
from support.dra_stage import DraStage, dra_driver
from support.isolation_stage import IsolationStage, ask, inventory, seen

VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}]}


@pytest.fixture(scope="module")
def claiming(lasting_stage: IsolationStage) -> Iterator[DraStage]:
    """The node's cards are handed out by claims meanwhile, and crishim has its default settings."""
    rig, machine = lasting_stage.rig, lasting_stage.machine
    machine.write(INVENTORY, inventory("dra"))
    lasting_stage.replace("--enforce", "strict")
    rig.cluster.api.create(DEVICE_CLASSES.at(), device_class())
    stage = DraStage(rig, lasting_stage.node.run(dra_driver(rig)), lasting_stage.broker)
    stage.wait_published()
    yield stage
    stage.driver.kill()
    rig.cluster.api.delete(RESOURCE_SLICES.at())
    rig.cluster.api.delete(DEVICE_CLASSES.at(name=CLASS))
    lasting_stage.replace()
    machine.write(INVENTORY, inventory())


@pytest.fixture
def stage(claiming: DraStage, rig: Rig) -> Iterator[DraStage]:
    yield claiming
    claiming.clear()


def test_a_claim_passes_and_has_what_it_says(stage: DraStage) -> None:
    pod = stage.pod("train", devices(request(300, "1Gi"))).wait_running()
    uid = stage.claim_of(pod)["metadata"]["uid"]
    assert seen(pod)["total"] == 1024
    assert ask(pod, "take 2000") != "took 2000"
    pod.delete_and_wait()
    stage.wait_nothing_left(uid)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"more": {"securityContext": {"privileged": True}}}, "a privileged container cannot be given part of a card"),
        ({"spec": {"hostPID": True}}, "hostPID) cannot be given part of a card"),
        (
            {"more": {"volumeMounts": [{"name": "v", "mountPath": "/run/partage/lib"}]}, "spec": VOLUMES},
            "mount the volume elsewhere",
        ),
    ],
)
def test_a_container_in_which_limits_would_not_hold_is_refused_in_words(
    stage: DraStage, said: dict[str, Any], words: str
) -> None:
    pod = stage.pod("unconfined", devices(request(300, "1Gi")), **said)
    assert words in pod.wait_waiting("CreateContainerError")


def test_a_container_with_two_claims_is_refused_in_words(stage: DraStage) -> None:
    pod = stage.pod_with_two("two")
    assert "has 2 claims of gpu.partage.dev; allowed: one" in pod.wait_waiting("CreateContainerError")
