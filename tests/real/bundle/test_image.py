"""A pod runs from the image of the nodes' tree, as it was pushed by the command that people use."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_bundle import image, recipe
from partage_bundle.registry import Repository, push
from real.bundle.conftest import HERE
from rig.client.manifests import a_pod
from rig.rig import Rig

TEAM = "team-a"


@pytest.fixture
def layout(node_tree: Path, tmp_path: Path) -> Path:
    version = (node_tree / "VERSION").read_text().strip()
    image.write(tmp_path, recipe.TREES["node"], version, [(recipe.MACHINES[HERE], node_tree)])
    return tmp_path


def test_a_pod_runs_the_pushed_image_by_its_digest(rig: Rig, layout: Path, node_tree: Path) -> None:
    to = Repository.of(f"{rig.registry.address}/partage-node", is_plain=True)
    digest = push(layout, to)
    assert push(layout, to) == digest, "what is there already is taken again"
    version = (node_tree / "VERSION").read_text().strip()
    name = f"registry.example/partage-node:{version}@{digest}"
    command = ["/opt/partage/current/bin/partage", "--version"]
    pod = rig.cluster.pods.create(TEAM, a_pod("bundle", image=name, command=command, node="n1"))
    pod.wait_succeeded()
    pod.wait_written("partage 0.1.0\n")
    pod.delete_and_wait()
