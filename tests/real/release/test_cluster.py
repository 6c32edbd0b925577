"""From a release's folder alone to a pod with a share of a card, by the commands of its README."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.programs import ensure
from rig.rig import CHECKOUT, Rig
from support.page import Reader
from support.release_folder import ReleaseFolder
from support.story_stage import StoryStage, reader_of
from trial.cluster import Trial, trial

LOGS = CHECKOUT / ".cache/test/rig-logs-release"
PART = "A cluster"
HELM = "helm install "
UNPACKED = "mkdir plugin && tar -xf {}/krew/*-linux-*.tar.gz -C plugin && ln -s plugin/kubectl-partage ."


@pytest.fixture
def cluster() -> Iterator[Trial]:
    with trial(("gpu-1",), say=print, keep_logs=LOGS) as made:
        yield made


@pytest.fixture
def rig(cluster: Trial) -> Iterator[Rig]:
    """Registers the rig, whose logs the report of a failure shows."""
    yield cluster.rig
    cluster.rig.cluster.close()


@pytest.fixture
def reader(cluster: Trial, release: ReleaseFolder, tmp_path: Path) -> Reader:
    """A reader in the release's folder, with oras and the kubectl plugin besides kubectl and helm."""
    subprocess.run(("sh", "-c", UNPACKED.format(release.path)), cwd=tmp_path, check=True)
    reader = reader_of(cluster, release.path, home=tmp_path)
    oras = ensure("oras")["oras"].parent
    reader.environment["PATH"] = f"{tmp_path}:{oras}:{reader.environment['PATH']}"
    return reader


@pytest.mark.timeout(1800)
def test_the_commands_of_the_release_lead_to_a_pod_with_a_share(
    cluster: Trial, rig: Rig, release: ReleaseFolder, reader: Reader
) -> None:
    began_s = 0.0
    for command in release.commands(PART):
        if command.startswith(HELM):
            began_s = time.time()
        reader.types(of_plain_registry(command, rig.registry.address))
    assert "1 of 1 nodes are as asked" in reader.types("kubectl partage rollout --wait")
    stage = StoryStage(cluster, reader, [])
    pod = stage.shared_pod("first", "gpu-1")
    kernel_s = stage.kernel_at_s(pod)
    print(f"from helm install to the first kernel: {kernel_s - began_s:.1f} s")  # noqa: T201  for who measures
    (card,) = stage.limits_of(pod).cards
    assert card.share_milli == 500
    for asked in ("nodes", f"explain -n {pod.namespace} first", "top --cluster"):
        print(reader.types(f"kubectl partage {asked}"))  # noqa: T201  as above


def of_plain_registry(command: str, address: str) -> str:
    """The command for a registry without TLS."""
    command = command.replace("oras cp ", "oras cp --to-plain-http ").replace(" registry.example/", f" {address}/")
    return command.replace("oci://registry.example/", f"--plain-http oci://{address}/")
