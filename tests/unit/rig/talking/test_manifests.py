"""Manifests are what a test said, and otherwise such that pods end quickly and fetch nothing."""

from __future__ import annotations

from rig.talking.manifests import a_container, a_job, a_node, a_pod


def test_a_pod_has_one_container_called_main() -> None:
    said = a_pod("web", image="busybox", command=["sleep", "600"], limits={"cpu": "1"}, env={"A": "b"})
    (main,) = said["spec"]["containers"]
    assert (main["name"], main["image"], main["command"]) == ("main", "busybox", ["sleep", "600"])
    assert main["resources"] == {"limits": {"cpu": "1"}}
    assert main["env"] == [{"name": "A", "value": "b"}]
    assert "args" not in main


def test_a_pod_ends_quickly_starts_nothing_again_and_fetches_nothing_that_is_there() -> None:
    spec = a_pod("web")["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Never", 1)
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_a_pod_is_anyones_to_schedule_unless_it_says_so() -> None:
    assert not {"nodeName", "schedulerName"} & a_pod("web")["spec"].keys()
    bound = a_pod("web", node="n1", scheduler="partage-scheduler")["spec"]
    assert (bound["nodeName"], bound["schedulerName"]) == ("n1", "partage-scheduler")


def test_what_is_said_in_kubernetes_own_words_wins() -> None:
    pod = a_pod("web", spec={"restartPolicy": "Always", "hostPID": True}, more={"imagePullPolicy": "Always"})
    assert (pod["spec"]["restartPolicy"], pod["spec"]["hostPID"]) == ("Always", True)
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_a_pod_may_have_several_containers() -> None:
    pod = a_pod("web", containers=[a_container("a"), a_container("b")], init_containers=[a_container("first")])
    assert [each["name"] for each in pod["spec"]["containers"]] == ["a", "b"]
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["first"]


def test_a_jobs_pods_are_not_tried_again() -> None:
    job = a_job("count", completions=3, annotations={"partage.dev/policy": "x"})
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (3, 3, 0)
    assert spec["template"]["metadata"]["annotations"] == {"partage.dev/policy": "x"}
    assert "name" not in spec["template"]["metadata"]


def test_a_made_up_node_is_ready_and_has_room() -> None:
    node = a_node("n1", annotations={"partage.dev/inventory": "{}"}, capacity={"pods": "5"})
    assert node["status"]["allocatable"] == {"cpu": "64", "memory": "256Gi", "pods": "5"}
    assert node["metadata"]["annotations"] == {"partage.dev/inventory": "{}"}
    assert node["status"]["conditions"][0]["status"] == "True"
