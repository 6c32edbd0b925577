"""`partage nodes` on a real cluster, with inventories and heartbeats written by the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from partage_base.kube import leases_path
from partage_plugins.api.keys import INVENTORY
from real.cli.asking import config_of, partage
from rig.client.cluster import Cluster
from rig.rig import Rig
from support.crishim_stage import NODE, inventory
from support.objects import lease_body
from unit.gpu_node.nodes import FIRST

LEASES = leases_path("partage-system")


@pytest.fixture
def cluster(rig: Rig) -> Iterator[Cluster]:
    yield rig.cluster
    for name in (NODE, "n2"):
        rig.cluster.nodes.annotate(name, {INVENTORY: None})


@pytest.fixture
def beat(cluster: Cluster) -> Iterator[Callable[[str, float], None]]:
    """Write a heartbeat of that age."""
    made: list[str] = []

    def beat(name: str, age_s: float) -> None:
        cluster.api.create(LEASES, lease_body(name, age_s=age_s))
        made.append(name)

    yield beat
    for name in made:
        cluster.api.delete(f"{LEASES}/{name}")


def test_cards_of_the_cluster_are_told_with_their_heartbeats(
    cluster: Cluster, beat: Callable[[str, float], None]
) -> None:
    for name, age_s in ((NODE, 1.0), ("n2", 300.0)):
        cluster.nodes.annotate(name, {INVENTORY: inventory()})
        beat(name, age_s)
    done = partage("nodes", "-o", "json", "--kubeconfig", config_of(cluster))
    assert (done.returncode, done.stderr) == (0, "")
    first, second = json.loads(done.stdout)["nodes"]
    assert (first["node"], first["cards"][0]["id"], len(first["cards"])) == (NODE, FIRST, 4)
    assert (first["heartbeat"]["stale"], second["heartbeat"]["stale"]) == (False, True)
    table = partage("nodes", "--kubeconfig", config_of(cluster)).stdout
    assert "stale: 5m" in table


def test_on_a_node_its_own_file_is_enough(rig: Rig) -> None:
    done = partage("nodes", "--local", "-o", "json", inside=rig.nodes[NODE].machine)
    (node,) = json.loads(done.stdout)["nodes"]
    assert (node["node"], len(node["cards"])) == (NODE, 4)
