"""The API server is down, rejects the token or has another Node: the annotation becomes correct again by itself."""

from __future__ import annotations

from partage_plugins.api.keys import INVENTORY as ANNOTATION
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import Json
from rig.errors import Refused
from rig.identity.people import ADVERTISER, OUR_NAMESPACE
from rig.machine.components import away
from support.advertiser_stage import AdvertiserStage, give_token, kubeconfig
from support.crishim_stage import IDLE

BEATS = 'partage_advertiser_heartbeats_total{outcome="done"}'


def test_an_advertiser_that_starts_and_sees_a_fault_during_an_outage_tells_it_after_it(stage: AdvertiserStage) -> None:
    access = kubeconfig(stage.rig, stage.name)
    with away(stage.rig.control.apiserver):
        component = stage.begin("--look-every-s", "1", access=access)
        stage.wait_written("ok", "ok")
        component.wait_ready()
        stage.tell_driver("lose 0")
        stage.wait_written("lost", "ok")
        assert stage.figure("partage_advertiser_published") == 0
    stage.wait_healths("lost", "ok")
    stage.wait_more(BEATS, 1)


def test_an_annotation_that_somebody_changed_is_true_again(stage: AdvertiserStage) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    text = stage.told_text()
    for value in ("forged", None):
        stage.rig.cluster.nodes.annotate(stage.name, {ANNOTATION: value})
        stage.wait("the annotation is true", lambda: None if stage.told_text() == text else "it is not")


def test_a_token_that_was_replaced_costs_nothing_and_one_that_ended_is_told(stage: AdvertiserStage) -> None:
    holders = [_holder(stage, name) for name in ("token-1", "token-2")]
    access = kubeconfig(stage.rig, stage.name)
    give_token(stage.rig, stage.name, holders[0].object)
    component = stage.begin("--look-every-s", "1", "--heartbeat-s", "1", access=access)
    component.wait_ready()
    stage.wait_healths("ok", "ok")
    give_token(stage.rig, stage.name, holders[1].object)
    holders[0].delete_and_wait(grace_s=0)  # its token ends with it
    stage.wait_more(BEATS, 2)
    holders[1].delete_and_wait(grace_s=0)
    stage.wait_figure('partage_advertiser_heartbeats_total{outcome="failed"}', 1)
    stage.tell_driver("lose 0")
    stage.wait_written("lost", "ok")
    assert "401" in component.tail(60)
    give_token(stage.rig, stage.name, stage.rig.cluster.nodes.get(stage.name))
    stage.wait_healths("lost", "ok")


def test_a_node_that_registers_again_is_told_of_and_owns_the_heartbeat(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1", "--heartbeat-s", "1")
    stage.wait_healths("ok", "ok")
    stage.wait_figure(BEATS, 1)
    cluster = stage.rig.cluster
    before = cluster.nodes.get(stage.name)["metadata"]["uid"]
    cluster.nodes.delete(stage.name)
    stage.node.kubelet.restart()
    cluster.nodes.wait_ready(stage.name)
    node = cluster.nodes.get(stage.name)
    assert node["metadata"]["uid"] != before
    give_token(stage.rig, stage.name, node)
    stage.wait_healths("ok", "ok")
    stage.wait("the new Node owns the Lease", lambda: _why_not_owned(stage, node))


def _holder(stage: AdvertiserStage, name: str) -> Pod:
    """A pod of the advertiser's account, which exists for its tokens."""
    spec = {"serviceAccountName": ADVERTISER.name}
    return stage.rig.cluster.pods.create(
        OUR_NAMESPACE, a_pod(name, image="busybox", command=IDLE, node=stage.name, spec=spec)
    )


def _why_not_owned(stage: AdvertiserStage, node: Json) -> str | None:
    try:
        owners = stage.lease()["metadata"].get("ownerReferences", [])
    except Refused as refused:
        return str(refused)
    return None if [each["uid"] for each in owners] == [node["metadata"]["uid"]] else f"owners are {owners}"
