"""Nodes that nobody may change get enforced shares by claims, from one command: the broker is in the driver's pods."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES, Json
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import TEAM
from support.claim_objects import devices, request
from support.install_stage import InstallStage, installable
from support.isolation_stage import IMAGE, SERVING, ask, image, seen

VALUES = ("mode=dra", "scheduler.replicas=1")
MIB_OF_GIB = 1024


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallStage]:
    """A separate cluster: the driver's pods get other names once they are deleted."""
    with installable(tmp_path_factory.mktemp("stage"), say=print) as made:
        made.rig.registry.push(image(), IMAGE)
        made.install(*VALUES)
        made.wait_rolled_out("daemonset/partage-advertiser", "daemonset/partage-dra")
        yield made
        made.rig.cluster.delete_made()
        made.uninstall()
        made.rig.cluster.close()


@pytest.mark.extended("the driver in pods; real/dra tests it on a node")
def test_a_pod_has_what_its_claim_says_and_no_more_whichever_pod_of_ours_goes(stage: InstallStage) -> None:
    cluster = stage.rig.cluster
    until("devices are published", lambda: None if cluster.api.list(RESOURCE_SLICES.at()) else "there are none")
    template = {"metadata": {"name": "third"}, "spec": {"spec": devices(request(300, "1Gi"), limit_milli=500)}}
    cluster.api.create(RESOURCE_CLAIM_TEMPLATES.at(TEAM), template)
    pod = cluster.pods.create(TEAM, claiming("train", "third"))
    pod.wait_running()
    assert seen(pod)["total"] == MIB_OF_GIB
    assert re.search(r"claim gpu +GPU-\S+ +300 ", explained(stage, "train"))
    assert ask(pod, "take 100") == "took 100"
    until("the figures of all nodes are in one table", lambda: _why_not_in_table(stage, pod))
    for each in stage.pods("partage-dra"):
        each.delete_and_wait()
    stage.wait_rolled_out("daemonset/partage-dra")
    assert ask(pod, "take 2000") != "took 2000"
    pod.delete_and_wait()


@pytest.mark.extended("the driver in pods; real/dra tests it on a node")
def test_a_container_in_which_limits_would_not_hold_is_not_made(stage: InstallStage) -> None:
    with pytest.raises(Refused, match="no container is privileged"):
        stage.rig.cluster.pods.create(TEAM, claiming("p", "third", more={"securityContext": {"privileged": True}}))


def explained(stage: InstallStage, name: str, *, code: int = 0) -> str:
    words = ("explain", f"{TEAM}/{name}", "--kubeconfig", str(stage.rig.cluster.kubectl.kubeconfig))
    told = partage_of(words)
    assert told.returncode == code, told.stderr
    return told.stdout


def _why_not_in_table(stage: InstallStage, pod: Pod) -> str | None:
    words = ("top", "--cluster", "-o", "json", "--kubeconfig", str(stage.rig.cluster.kubectl.kubeconfig))
    told = partage_of(words)
    found = json.loads(told.stdout) if told.returncode == 0 else {}
    nodes = {each["node"]: [one["is_claim"] for one in each["containers"]] for each in found.get("nodes", [])}
    wanted = {name: [True] if name == pod.node else [] for name in stage.rig.nodes}
    return None if nodes == wanted else f"{told.stdout[-2000:]}{told.stderr}"


def partage_of(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-P", "-m", "partage_cli", *words)
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def claiming(name: str, template: str, **said: Any) -> Json:
    fields: Any = {"image": IMAGE, "command": SERVING, **said}
    made = a_pod(name, **fields, spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}]})
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


@pytest.mark.extended("fills a cluster; the sentences are tested by unit/cli")
def test_why_a_claim_does_not_fit_is_said_in_figures_whoever_allocates_it(stage: InstallStage) -> None:
    """kube-scheduler has one sentence for all reasons."""
    cluster = stage.rig.cluster
    template = {"metadata": {"name": "large"}, "spec": {"spec": devices(request(800, "1Gi"))}}
    cluster.api.create(RESOURCE_CLAIM_TEMPLATES.at(TEAM), template)
    pods = [cluster.pods.create(TEAM, claiming(f"large-{number}", "large")) for number in range(5)]
    until("a pod has each card", lambda: None if len(_waiting(pods)) == 1 else f"{len(_waiting(pods))} pods wait")
    (left,) = _waiting(pods)  # not always the last: its queue position depends on when its claim was created
    left.wait("is told why it waits", lambda _: None if left.condition("PodScheduled").get("message") else "it is not")
    told = explained(stage, left.name, code=3)
    assert "Insufficient GPU share" in told
    assert "a share of at most 200 milli of a card" in told
    assert "DRA hands it out" not in told


def _waiting(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.refresh()["status"]["phase"] != "Running"]
