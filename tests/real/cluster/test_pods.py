"""What every later test relies on: pods run, speak, obey and end on each node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.codecs import key_id, verify
from partage_plugins.vocabulary import Allocation, NodeName, PodUid
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from rig.client import pod_status
from rig.client.manifests import a_job, a_pod
from rig.client.resources import JOBS
from rig.client.wait import until
from rig.rig import Rig

TEAM = "team-a"


@pytest.fixture(autouse=True)
def pods_end_with_the_test(rig: Rig) -> Iterator[None]:
    yield
    rig.cluster.pods.delete_made()


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_pod_runs_speaks_is_entered_and_ends(rig: Rig, node: str) -> None:
    program = ["sh", "-c", "echo hello from $HOSTNAME; exec sleep 600"]
    pod = rig.cluster.pods.create(TEAM, a_pod(f"web-{node}", image="busybox", command=program, node=node))
    pod.wait_running()
    assert pod.logs() == f"hello from web-{node}\n"
    assert pod.exec("cat", "/etc/hostname") == f"web-{node}\n"
    assert pod.tried("false").status == 1
    assert rig.nodes[node].machine.addresses.holds(pod.object["status"]["podIP"])
    pod.delete_and_wait()
    assert pod.name not in [each.name for each in rig.cluster.pods.list(TEAM)]


@pytest.mark.parametrize(("image", "libc"), [("glibc", "libc.so.6"), ("musl", "ld-musl")])
def test_the_images_for_preloading_hold_dynamic_programs(rig: Rig, image: str, libc: str) -> None:
    pod = rig.cluster.pods.create(TEAM, a_pod(f"dynamic-{image}", image=image, command=["sh", "-c", "mapped"]))
    pod.wait_succeeded()
    assert libc in pod.logs()


def test_a_job_is_scheduled_over_the_nodes_and_completes(rig: Rig) -> None:
    api = rig.cluster.api
    job = api.create(JOBS.at(TEAM), a_job("count", completions=3, image="busybox", command=["true"]))
    path = JOBS.at(TEAM, job["metadata"]["name"])

    def why_not() -> str | None:
        status = api.get(path)["status"]
        return None if status.get("succeeded") == 3 else str(status)

    until("the job completes", why_not)
    api.delete(path, {"propagationPolicy": "Foreground"})


def test_a_pod_of_an_ordinary_user_that_is_bound_by_our_scheduler_runs_there(rig: Rig) -> None:
    key = Ed25519PrivateKey.generate()
    pod = rig.cluster.as_user("alice").pods.create(
        TEAM, a_pod("bound", image="busybox", command=["true"], scheduler="us")
    )
    allocation = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName("n2"), containers={})
    rig.cluster.bind(pod, "n2", allocation, signed_by=key)
    pod.wait_succeeded()
    assert pod.node == "n2"
    verify(pod.annotations[ALLOCATION], pod.annotations[SIGNATURE], {key_id(key.public_key()): key.public_key()})
    pod.delete_and_wait()


def test_pods_on_different_nodes_reach_each_other(rig: Rig) -> None:
    served = ["sh", "-c", "echo here > /tmp/index.html; exec httpd -f -p 80 -h /tmp"]
    server = rig.cluster.pods.create(TEAM, a_pod("server", image="busybox", command=served, node="n1"))
    server.wait_running()
    fetch = f"until wget -q -O - http://{server.object['status']['podIP']}/; do sleep 0.1; done"
    client = rig.cluster.pods.create(TEAM, a_pod("client", image="busybox", command=["sh", "-c", fetch], node="n2"))
    client.wait_succeeded()
    assert client.logs().endswith("here\n")


def test_probes_decide_when_a_pod_is_ready_and_when_it_starts_again(rig: Rig) -> None:
    looks = {"periodSeconds": 1, "failureThreshold": 1}
    probes = {
        "readinessProbe": {"exec": {"command": ["test", "-e", "/run/ready"]}, **looks},
        "livenessProbe": {"exec": {"command": ["test", "!", "-e", "/run/sick"]}, **looks},
    }
    manifest = a_pod("probed", image="busybox", command=["sleep", "600"], restart="Always", more=probes)
    pod = rig.cluster.pods.create(TEAM, manifest)
    pod.wait_running()
    assert pod.condition("Ready")["status"] == "False"
    pod.exec("touch", "/run/ready")
    pod.wait("is ready", lambda seen: None if pod_status.condition(seen, "Ready")["status"] == "True" else "not ready")
    pod.exec("touch", "/run/sick")
    pod.wait("starts again", lambda _: None if pod.container()["restartCount"] else pod_status.summary(pod.object))
    assert any(event.reason == "Unhealthy" and "Liveness" in event.message for event in pod.events())


def test_a_pod_whose_image_nobody_has_says_so(rig: Rig) -> None:
    pod = rig.cluster.pods.create(TEAM, a_pod("without", image="registry.example/none:1", command=["true"]))
    assert "not found" in pod.wait_waiting("ErrImagePull")
    assert any("not found" in event.message for event in rig.cluster.events_of(pod))
