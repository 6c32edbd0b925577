"""A SharePod's life on a real API server: its pod, its status, its card by name, its end."""

from __future__ import annotations

from rig.client.wait import until
from support.sharepods import GPUID, Stage, a_sharepod, by_hand


def test_the_walk_through_of_its_documents(stage: Stage) -> None:
    stage.create(a_sharepod("pod1", "0.4"))
    node, gpuid = stage.wait_placed("pod1")
    assert (node, len(gpuid), gpuid.isalpha()) == ("n1", 5, True)
    stage.create(a_sharepod("pod2", "0.6"))
    assert stage.wait_placed("pod2") == (node, gpuid), "what is left of the card is exactly enough"
    assert stage.card("pod1") == stage.card("pod2") == stage.share("pod2")["status"]["BoundDeviceID"]
    stage.create(a_sharepod("pod3", "0.3"))
    _, other = stage.wait_placed("pod3")
    assert other != gpuid
    assert stage.card("pod3") != stage.card("pod1")


def test_its_pod_is_its_own_and_goes_with_it(stage: Stage) -> None:
    stage.create(a_sharepod("p", "0.5", annotations={"team": "red", "kubeshare/sched_affinity": "red"}))
    stage.wait_placed("p")
    pod, share = stage.pod("p"), stage.share("p")
    assert pod is not None
    (owner,) = pod.object["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (share["metadata"]["uid"], True, True)
    assert pod.object["spec"]["schedulerName"] == "partage-scheduler"
    assert pod.annotations["team"] == "red"
    stage.ends("p", "Running")
    stage.wait("says that it runs", "p", lambda each: each["status"]["PodStatus"]["phase"] == "Running")
    assert stage.share("p")["status"]["PodObjectMeta"]["uid"] == pod.uid
    assert stage.condition("p") == ("True", "Synced", "SharePod synced successfully")
    printed = stage.cluster.kubectl.run("get", "shp", "-n", pod.namespace, "p")
    assert {"Running", "n1", share["metadata"]["annotations"][GPUID]} <= set(printed.split())
    until("it has its event", lambda: None if any(e.reason == "Synced" for e in stage.events("p")) else "none", 20)
    stage.delete("p")
    stage.wait_gone("p")


def test_a_pair_that_a_user_made_up_is_one_card_until_its_last_pod_goes(stage: Stage) -> None:
    stage.create(a_sharepod("other", "0.1"))
    stage.wait_placed("other")
    stage.create(by_hand("one", "0.3", node="n1", gpuid="abcde"))
    stage.create(by_hand("two", "0.3", node="n1", gpuid="abcde"))
    assert stage.wait_placed("one") == stage.wait_placed("two") == ("n1", "abcde")
    first = stage.card("one")
    assert stage.card("two") == first
    assert first != stage.card("other"), "a new pair is an idle card"
    stage.create(by_hand("three", "0.5", node="n1", gpuid="abcde"))
    stage.wait("has its pod", "three", lambda share: "PodStatus" in share.get("status", {}))
    pod = stage.pod("three")
    assert pod is not None
    pod.wait("is refused by its card", lambda _: None if "Insufficient" in str(pod.object["status"]) else "no", 30)
    stage.delete("one")
    assert stage.wait_placed("three") == ("n1", "abcde")
    assert stage.card("three") == first, "it waits for its card, though the other one has room"
    for name in ("two", "three", "other"):
        stage.delete(name)
        stage.wait_gone(name)
    stage.create(a_sharepod("later", "0.1"))
    assert stage.wait_placed("later")[1] != "abcde"


def test_a_pod_comes_again_as_its_restart_policy_says(stage: Stage) -> None:
    for name, policy in (("again", "OnFailure"), ("enough", "Never")):
        stage.create(a_sharepod(name, "0.1", restartPolicy=policy))
        stage.wait_placed(name)
        stage.ends(name, "Failed")
        stage.wait("says that it failed", name, lambda share: share["status"]["PodStatus"]["phase"] == "Failed")
    first, last = stage.pod("again"), stage.pod("enough")
    assert first is not None
    assert last is not None
    node_and_gpuid = stage.wait_placed("again")
    last.delete_and_wait(0)
    first.delete_and_wait(0)
    stage.wait("has another pod", "again", lambda share: share["status"]["PodObjectMeta"]["uid"] != first.uid)
    assert stage.wait_placed("again") == node_and_gpuid
    assert stage.pod("enough") is None
    assert stage.share("enough")["status"]["PodStatus"]["phase"] == "Failed"
