"""Who hands out cards where NVIDIA's device plugin is on the node, and what is told of a card that two hand out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rig.client.manifests import a_container, a_pod
from rig.client.pods import Pod
from support.advertiser_stage import AdvertiserStage
from support.crishim_stage import IDLE
from support.simgpu_stage import RESOURCE, UUIDS

pytestmark = pytest.mark.timeout(400)

TEAM = "team-a"
ALL_OURS = {"PARTAGE_GPU_POOL": "all"}
ONE_CARD = {RESOURCE: "1"}


def pools(stage: AdvertiserStage) -> list[str]:
    return [card.pool for card in stage.cards()]


def wait_pools(stage: AdvertiserStage, *wanted: str) -> None:
    stage.wait(f"pools are {wanted}", lambda: None if pools(stage) == [*wanted] else f"they are {pools(stage)}")


def wait_offered(stage: AdvertiserStage) -> None:
    """Until kubelet has cards to give."""

    def why_none() -> str | None:
        amount = stage.rig.cluster.nodes.get(stage.name)["status"]["allocatable"].get(RESOURCE, "none")
        return None if amount == str(len(UUIDS)) else f"the node has {amount}"

    stage.wait("kubelet offers the cards", why_none)


def native_pod(stage: AdvertiserStage, name: str, command: Sequence[str] = IDLE, **said: Any) -> Pod:
    """A pod that kubelet gives a card by itself."""
    wait_offered(stage)
    fields: dict[str, Any] = {"image": "busybox", "command": command, "node": stage.name, "limits": ONE_CARD, **said}
    return stage.rig.cluster.pods.create(TEAM, a_pod(name, **fields))


def healths(stage: AdvertiserStage) -> list[str]:
    return sorted(card.health for card in stage.cards())


def wait_given(stage: AdvertiserStage, words: str) -> None:
    """Until one of the two cards is in native hands, and the other is not."""

    def why_not() -> str | None:
        found = healths(stage)
        is_told = len(found) == len(UUIDS) and found[0].startswith("degraded: kubelet gave it to pod ")
        return None if is_told and words in found[0] and found[1] == "ok" else f"they are {found}"

    stage.wait("one card is in native hands", why_not)


def test_beside_a_device_plugin_cards_are_kubelets(native: AdvertiserStage) -> None:
    wait_offered(native)
    native.start()
    wait_pools(native, "kubelet", "kubelet")
    native.wait_healths("ok", "ok")


def test_a_card_can_be_ours_beside_a_device_plugin(native: AdvertiserStage) -> None:
    wait_offered(native)
    native.start(env={"PARTAGE_GPU_POOL": UUIDS[1]})
    wait_pools(native, "kubelet", "shared")


def test_kubelets_own_card_in_native_hands_is_as_it_should_be(native: AdvertiserStage) -> None:
    pod = native_pod(native, "as-it-should-be")
    pod.wait_running()
    native.start()
    wait_pools(native, "kubelet", "kubelet")
    native.wait_healths("ok", "ok")


def test_a_shared_card_that_kubelet_gave_away_is_told_until_the_pod_is_gone(native: AdvertiserStage) -> None:
    pod = native_pod(native, "holder")
    pod.wait_running()
    native.start("--look-every-s", "1", env=ALL_OURS)
    wait_given(native, "team-a/holder (container main)")
    native.wait_event("CardGivenTwice", "kubelet gave it to pod team-a/holder")
    assert native.told_text() == native.written_text()
    pod.delete_and_wait()
    native.wait_healths("ok", "ok")
    native.wait_event("CardRecovered", "takes new pods")


def test_a_card_of_an_init_container_which_kubelet_does_not_list_is_told(native: AdvertiserStage) -> None:
    init = a_container("prepare", image="busybox", command=IDLE, limits=ONE_CARD)
    pod = native_pod(native, "prepared", limits={}, init_containers=[init])
    native.start("--look-every-s", "1", env=ALL_OURS)
    wait_given(native, "team-a/prepared (container prepare)")
    pod.delete_and_wait()
    native.wait_healths("ok", "ok")


def test_a_pod_that_has_ended_holds_nothing(native: AdvertiserStage) -> None:
    pod = native_pod(native, "ended", ("true",))
    pod.wait_succeeded()
    native.start("--look-every-s", "1", env=ALL_OURS)
    native.wait_healths("ok", "ok")
    native.wait_more('partage_advertiser_looks_total{outcome="done"}', 3)
    assert healths(native) == ["ok", "ok"]
    assert not native.events()


def test_a_pod_that_ends_while_its_object_stays_gives_its_card_back(native: AdvertiserStage) -> None:
    pod = native_pod(native, "ends", ("sh", "-c", "until test -e /end; do sleep 0.2; done"))
    pod.wait_running()
    native.start("--look-every-s", "1", env=ALL_OURS)
    wait_given(native, "team-a/ends")
    pod.exec("touch", "/end")
    pod.wait_succeeded()
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
    native.rig.cluster.pods.create(TEAM, newcomer).wait_succeeded()  # so kubelet has judged them all
    for pod in (holder, plain):
        pod.refresh()
        assert pod.phase == "Running"
    assert [pod.container()["state"]["running"]["startedAt"] for pod in (holder, plain)] == started
