"""The driver, the broker and kubelet may be down or restart, in any order: claims stay as they are, and end."""

from __future__ import annotations

import pytest

from rig.client.wait import until
from rig.errors import RigError
from rig.machine.components import away
from support.claim_objects import devices, request
from support.dra_stage import DraStage
from support.isolation_stage import ask


def test_a_pod_that_ends_while_the_driver_is_away_is_cleaned_up_after(stage: DraStage) -> None:
    pod = stage.pod("ends").wait_running()
    uid = stage.claim_of(pod)["metadata"]["uid"]
    with away(stage.driver):
        pod.delete()
        until("its container is gone", lambda: "it is not" if stage.running() else None)
        assert stage.record(uid) is not None
        assert stage.told(uid) is not None
    pod.wait_gone()
    stage.wait_nothing_left(uid)


@pytest.mark.extended("what kubelet does by itself: it asks once for a claim")
def test_another_pod_of_a_prepared_claim_starts_while_the_driver_is_away(stage: DraStage) -> None:
    stage.claim("shared", devices(request(300, "1Gi")))
    stage.pod("shared-a", claim="shared").wait_running()
    with away(stage.driver):
        other = stage.pod("shared-b", claim="shared").wait_running()
        assert ask(other, "take 2000") != "took 2000"


def test_a_driver_that_starts_again_knows_its_claims(stage: DraStage) -> None:
    pod = stage.pod("stays").wait_running()
    record = stage.record(stage.claim_of(pod)["metadata"]["uid"])
    stage.driver.restart()
    assert ask(pod, "take 100") == "took 100"
    assert stage.record(stage.claim_of(pod)["metadata"]["uid"]) == record
    stage.pod("later").wait_running()


def test_limits_stay_over_a_broker_s_restart(stage: DraStage) -> None:
    pod = stage.pod("limited", devices(request(300, "1Gi"))).wait_running()
    assert ask(pod, "take 200") == "took 200"
    stage.broker.restart()
    assert ask(pod, "take 2000") != "took 2000"
    assert ask(pod, "take 100") == "took 100"


def test_a_kubelet_that_starts_again_finds_driver_and_devices(stage: DraStage) -> None:
    before = stage.pod("before").wait_running()
    stage.node.kubelet.restart()
    stage.pod("after").wait_running(120)
    stage.wait_published()
    assert ask(before, "take 100") == "took 100"
    uid = stage.claim_of(before)["metadata"]["uid"]
    before.delete_and_wait()
    stage.wait_nothing_left(uid)


@pytest.mark.extended("what kubelet does by itself: it deletes the slices, and asks once for a claim")
def test_a_kubelet_that_starts_again_takes_the_devices_away_and_asks_for_no_claim_that_it_has(stage: DraStage) -> None:
    stage.pod("before").wait_running()
    stage.wait_published()
    asked, before = stage.prepares(), slices(stage)
    stage.node.kubelet.restart()

    until("another slice is there", lambda: None if slices(stage) - before else "it is not")
    stage.pod("after").wait_running(120)
    assert stage.prepares() == asked + 1


def slices(stage: DraStage) -> set[str]:
    """Their uids."""
    return {each["metadata"]["uid"] for each in stage.slices()}


@pytest.mark.extended("kubelet asks again by itself; the soak of claims does so often")
def test_a_pod_that_is_placed_while_the_driver_is_away_starts_when_it_is_back(stage: DraStage) -> None:
    stage.wait_published()
    with away(stage.driver):
        pod = stage.pod("early")
        pod.wait_event("NodePrepareResources")
    pod.wait_running(120)
    assert ask(pod, "take 2000") != "took 2000"


def test_a_claim_in_use_stays_when_other_pods_of_it_come_and_go(stage: DraStage) -> None:
    uid = stage.claim("kept", devices(request(300, "1Gi")))
    pod = stage.pod("kept-a", claim="kept").wait_running()
    stage.come_and_go("kept")
    assert ask(pod, "take 100") == "took 100"
    assert ask(pod, "take 2000") != "took 2000"
    assert stage.record(uid) is not None
    pod.delete_and_wait()
    stage.wait_nothing_left(uid)


@pytest.mark.extended("waits for half a minute of kubelet's own grace")
def test_kubelet_takes_the_devices_away_while_the_driver_is_and_it_publishes_them_again(stage: DraStage) -> None:
    stage.wait_published()
    with away(stage.driver):
        until("no slice is left", lambda: None if not stage.slices() else "one is")
    stage.wait_published()
    stage.pod("after").wait_running()


def test_limits_stay_over_a_runtime_s_restart(stage: DraStage) -> None:
    pod = stage.pod("through", devices(request(300, "1Gi"))).wait_running()
    stage.node.containerd.restart()

    def why_not() -> str | None:
        """A runtime that was down is redialled by kubelet only once in a while."""
        try:
            return None if (said := ask(pod, "take 100")) == "took 100" else said
        except RigError as error:
            return str(error)

    until("the program is asked through the runtime", why_not)
    assert ask(pod, "take 2000") != "took 2000"
    stage.pod("after-the-runtime").wait_running()
    uid = stage.claim_of(pod)["metadata"]["uid"]
    pod.delete_and_wait()
    until("its claim has ended", lambda: None if stage.record(uid) is None else "it has not")
