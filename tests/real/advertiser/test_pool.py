"""The allocator of cards beside NVIDIA's device plugin, and the report on a card that both hand out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rig.client.manifests import a_container, a_pod
from rig.client.pods import Pod
from rig.client.resources import RESOURCE_SLICES
from support.advertiser_stage import AdvertiserStage
from support.crishim_stage import IDLE
from support.simgpu_stage import RESOURCE, UUIDS

TEAM = "team-a"
ALL_OURS = {"PARTAGE_GPU_POOL": "all"}
ONE_CARD = {RESOURCE: "1"}


def _why_not_kubelets(stage: AdvertiserStage) -> str | None:
    found = [card.pool for card in stage.cards()]
    return None if found == ["kubelet", "kubelet"] else f"they are {found}"


def native_pod(stage: AdvertiserStage, name: str, command: Sequence[str] = IDLE, **said: Any) -> Pod:
    """A pod to which kubelet itself gives a card."""
    stage.rig.cluster.nodes.wait_allocatable(stage.name, RESOURCE, len(UUIDS))
    fields: dict[str, Any] = {"image": "busybox", "command": command, "node": stage.name, "limits": ONE_CARD, **said}
    return stage.rig.cluster.pods.create(TEAM, a_pod(name, **fields))


def healths(stage: AdvertiserStage) -> list[str]:
    return sorted(card.health for card in stage.cards())


def wait_given(stage: AdvertiserStage, words: str) -> None:
    """Wait until the device plugin has handed out exactly one of the two cards."""

    def why_not() -> str | None:
        found = healths(stage)
        is_told = len(found) == len(UUIDS) and found[0].startswith("degraded: kubelet gave it to pod ")
        return None if is_told and words in found[0] and found[1] == "ok" else f"they are {found}"

    stage.wait("one card is in native hands", why_not)


def test_cards_that_kubelet_hands_out_are_as_they_should_be(native: AdvertiserStage) -> None:
    native_pod(native, "as-it-should-be").wait_running()
    native.start()
    native.wait("pools are kubelet's", lambda: _why_not_kubelets(native))
    native.wait_healths("ok", "ok")
    told = native.told()
    assert told is not None
    assert not told.ready.crishim


def test_a_shared_card_is_told_for_as_long_as_kubelet_gives_it_to_a_pod(native: AdvertiserStage) -> None:
    pod = native_pod(native, "holder").wait_running()
    native.start("--look-every-s", "1", env=ALL_OURS)
    wait_given(native, "team-a/holder (container main)")
    native.wait_event("CardGivenTwice", "kubelet gave it to pod team-a/holder")
    assert native.told_text() == native.written_text()
    pod.delete_and_wait()
    native.wait_healths("ok", "ok")
    native.wait_event("CardRecovered", "takes new pods")
    # kubelet does not list cards of an init container
    init = a_container("prepare", image="busybox", command=IDLE, limits=ONE_CARD)
    pod = native_pod(native, "prepared", limits={}, init_containers=[init])
    wait_given(native, "team-a/prepared (container prepare)")
    pod.delete_and_wait()
    native.wait_healths("ok", "ok")
    # the object of a pod that ended stays
    pod = native_pod(native, "ends", ("sh", "-c", "until test -e /end; do sleep 0.2; done")).wait_running()
    wait_given(native, "team-a/ends")
    pod.exec("touch", "/end")
    pod.wait_succeeded()
    native.wait_healths("ok", "ok")


def test_a_card_that_another_dra_driver_offers_is_told_for_as_long_as_its_slice_stands(native: AdvertiserStage) -> None:
    api, driver = native.rig.cluster.api, "gpu.nvidia.com"
    device = {"name": "gpu-0", "attributes": {"uuid": {"string": UUIDS[0]}}}
    pool = {"name": native.name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": native.name, "pool": pool, "devices": [device]}
    native.start(env={**ALL_OURS, "PARTAGE_GPU_DRA": UUIDS[0]})
    native.wait_healths("ok", "ok")
    api.create(RESOURCE_SLICES.at(), {"metadata": {"name": f"{native.name}-{driver}"}, "spec": spec})
    native.wait_healths(f"degraded: DRA driver {driver} hands it out, as its ResourceSlice says", "ok")
    native.wait_event("CardGivenTwice", f"DRA driver {driver}")
    api.delete(RESOURCE_SLICES.at(name=f"{native.name}-{driver}"))
    native.wait_healths("ok", "ok")


def test_a_restart_of_kubelet_with_a_lost_card_costs_no_running_pod(
    native: AdvertiserStage, natives_again: None
) -> None:
    holder, plain = native_pod(native, "with-a-card"), native_pod(native, "plain", limits={})
    for pod in (holder, plain):
        pod.wait_running()
    started = [pod.container()["state"]["running"]["startedAt"] for pod in (holder, plain)]
    native.start("--look-every-s", "1", env=ALL_OURS)
    wait_given(native, "with-a-card")
    given = next(card.index for card in native.cards() if card.health != "ok")
    native.tell_driver(f"lose {given}")
    native.wait("the card is lost", lambda: None if "lost" in healths(native) else f"they are {healths(native)}")
    native.node.kubelet.restart()
    newcomer = a_pod("newcomer", image="busybox", command=("true",), node=native.name)
    native.rig.cluster.pods.create(TEAM, newcomer).wait_succeeded()  # so kubelet has admitted or rejected them all
    for pod in (holder, plain):
        pod.refresh()
        assert pod.phase == "Running"
    assert [pod.container()["state"]["running"]["startedAt"] for pod in (holder, plain)] == started
