"""What every later test relies on: pods run, speak, obey and end on each node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.client.manifests import a_pod
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
    pod.wait_written(f"hello from web-{node}\n")
    assert pod.exec("cat", "/etc/hostname") == f"web-{node}\n"
    assert pod.tried("false").status == 1
    assert rig.nodes[node].machine.addresses.holds(pod.object["status"]["podIP"])
    pod.delete_and_wait()
    assert pod.name not in [each.name for each in rig.cluster.pods.list(TEAM)]
