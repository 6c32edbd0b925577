"""helm installs a separate kube-scheduler beside partage's scheduler, on nodes that stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.api.keys import ALLOCATION, GPU_MEMORY, GPU_MILLI, SIGNATURE
from real.scheduler.conftest import with_cards
from rig import images
from rig.client.manifests import a_pod
from rig.identity.people import TEAM
from rig.programs import ensure
from support.chart import CHART, INTO, RELEASE
from support.install_stage import REGISTRY, InstallStage, installable

ANYWHERE = {"tolerations": [{"operator": "Exists"}]}


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallStage]:
    """A separate cluster: what advertisers published of nodes stays there after the last helm command."""
    with installable(tmp_path_factory.mktemp("stage"), say=print) as made:
        yield made


@pytest.mark.extended("what the Job runs is tested by itself, and that the chart has it by real/chart")
def test_a_wrong_setting_fails_helm_with_the_schedulers_own_sentence(stage: InstallStage) -> None:
    wrong = "scheduler.environment.PARTAGE_GPU_POLICY=fastest"
    refused = stage.helm.tried("install", RELEASE, CHART, *INTO, "--create-namespace", values=[*stage.values, wrong])
    assert refused.status == 1
    assert "PARTAGE_GPU_POLICY: policy 'fastest' is not known; allowed: one of binpack, " in refused.out + refused.err
    assert stage.pods("partage-scheduler") == []
    stage.helm.run("uninstall", RELEASE, *INTO)


@pytest.mark.extended("the extender itself is tested by real/scheduler")
def test_a_kube_scheduler_that_is_a_pod_places_by_the_extender(stage: InstallStage) -> None:
    """On a made-up node, since the real ones have no crishim here."""
    program = ensure("kubernetes")["kube-scheduler"]
    stage.rig.registry.push(
        images.busybox().with_files({"/usr/bin/kube-scheduler": program}), "partage/kube-scheduler:1"
    )
    stage.install(
        *("installer.enabled=false", "advertiser.enabled=false", "scheduler.replicas=1", "extender.enabled=true"),
        *("kubeScheduler.enabled=true", f"kubeScheduler.image={REGISTRY}/kube-scheduler:1", "kubeScheduler.replicas=1"),
    )
    stage.give_extender_address()
    stage.wait_rolled_out("deployment/partage-kube-scheduler")
    with_cards(stage.rig.cluster, "made-up")
    limits = {GPU_MILLI: "500", GPU_MEMORY: "1Gi"}
    pod = stage.rig.cluster.pods.create(
        TEAM, a_pod("p", scheduler="partage-kube-scheduler", limits=limits, spec=ANYWHERE)
    )
    assert pod.wait_bound() == "made-up"
    assert {ALLOCATION, SIGNATURE} <= pod.annotations.keys()
    stage.rig.cluster.delete_made(grace_s=0)
    stage.uninstall()
