"""`partage simulate` of a real cluster, by what the real kubectl prints of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_plugins.testing.examples import inventory
from partage_plugins.vocabulary.keys import INVENTORY
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.rig import Rig
from unit.cli.program import partage
from unit.cli.simulation.snapshots_made import card


@pytest.fixture
def cluster(rig: Rig) -> Iterator[Cluster]:
    yield rig.cluster
    rig.cluster.delete_made(grace_s=0)
    rig.cluster.nodes.annotate("n1", {INVENTORY: None})


def test_what_kubectl_prints_is_a_snapshot(cluster: Cluster, tmp_path: Path) -> None:
    cards = inventory(gpu={"driver": "1", "cuda": "1", "cards": [card("GPU-a"), card("GPU-b")]})
    cluster.nodes.annotate("n1", {INVENTORY: cards})
    for name in ("first", "second"):
        limits = {"partage.dev/gpu-milli": "700", "cpu": "100m"}
        cluster.pods.create("default", a_pod(name, scheduler="nobody", limits=limits))
    file = tmp_path / "now.json"
    file.write_text(cluster.kubectl.run("get", "nodes,pods", "-A", "-o", "json"))
    done = partage(tmp_path, "simulate", "--snapshot", str(file), "--policy", "binpack", "--seeds", "1", "-o", "json")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    assert whole["workload"] == {"origin": "now.json", "nodes": 1, "cards": 2, "pods": 2}
    assert (whole["now"]["arrived"], whole["now"]["allocated"]) == (70, 0.0)
    assert whole["policies"][0]["points"][-1]["allocated"]["mean"] == 70.0
