"""The documented commands push images to a registry and a chart that names exactly these; a pod runs from them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rig.client.manifests import a_pod
from rig.rig import CHECKOUT, Rig
from support.chart import helm_in

TEAM = "team-a"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "bundle"


def bundle(*words: str | Path) -> list[str]:
    done = subprocess.run((CHECKOUT / "tools/bundle", *words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.extended("pushes and runs whole images; what is in them is tested by test_trees")
def test_a_pod_runs_the_image_that_was_pushed_and_that_the_packaged_chart_names(
    rig: Rig, out: Path, tmp_path: Path
) -> None:
    *_, archive = bundle("all", "--out", out)
    pushed = bundle("push", f"{rig.registry.address}/partage", "--plain-http", "--out", out)
    assert bundle("push", f"{rig.registry.address}/partage", "--plain-http", "--out", out) == pushed, "taken again"
    subprocess.run(("tar", "-xf", archive, "-C", tmp_path), check=True)
    (chart,) = tmp_path.glob("partage-*/chart")
    version = chart.parent.name.removeprefix("partage-")
    rendered = helm_in(tmp_path).run(
        *("template", "partage", chart, "--kube-version", "1.36.0"), values=["image.registry=registry.example/partage"]
    )
    for each in pushed:
        name, _, digest = each.rpartition("/")[2].partition("@")
        image = f"registry.example/partage/{name}:{version}@{digest}"
        assert f"image: {image}\n" in rendered
        command = ["/opt/partage/current/bin/partage", "--version"]
        pod = rig.cluster.pods.create(TEAM, a_pod(name, image=image, command=command, node="n1"))
        pod.wait_succeeded()
        pod.wait_written("partage 0.1.0\n")
        pod.delete_and_wait()
