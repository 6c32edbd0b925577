"""With crishim between kubelet and its runtime, a container whose limits would not hold is not even made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from real.dra.conftest import RELEASES
from rig.rig import CHECKOUT
from support.dra_stage import DraStage, claimed, devices, request
from support.isolation_stage import ask, seen

LOGS = CHECKOUT / ".cache/test/rig-logs-dra-crishim"
VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}]}


@pytest.fixture(scope="module")
def lasting_stage() -> Iterator[DraStage]:
    with claimed(say=print, keep_logs=LOGS, with_crishim=True, releases=RELEASES) as stage:
        yield stage


def test_a_claim_passes_and_has_what_it_says(stage: DraStage) -> None:
    pod = stage.pod("train", devices(request(300, "1Gi")))
    pod.wait_running()
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
