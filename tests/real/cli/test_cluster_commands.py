"""Commands that read more than nodes from a real API server: our pods' logs, Events, and pods that have ended."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from real.cli.asking import config_of, partage
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.identity.people import OUR_NAMESPACE
from rig.rig import Rig

LINE: Final = '{"ts":"2026-01-01T00:00:00Z","level":"info","event":"it runs","daemon":"advertiser","url":"hidden"}'


@pytest.fixture
def pod(rig: Rig) -> Iterator[Pod]:
    """A pod that printed one line of a daemon and another line, and ended."""
    said = f"echo '{LINE}'; echo hidden"
    labels = {"app.kubernetes.io/part-of": "partage"}
    manifest = a_pod("partage-speaker", image="busybox", command=["sh", "-c", said], labels=labels, node="n2")
    pod = rig.cluster.pods.create(OUR_NAMESPACE, manifest)
    pod.wait_succeeded()
    yield pod
    pod.delete_and_wait()


def test_a_bundle_has_the_logs_of_our_pods_and_the_fleet_is_found(rig: Rig, pod: Pod, tmp_path: Path) -> None:
    file = tmp_path / "bundle.tar.gz"
    done = partage("support-bundle", "--output", str(file), "--kubeconfig", config_of(rig.cluster), root=str(tmp_path))
    assert done.returncode == 0, done.stderr
    with tarfile.open(file) as tar:
        files = {each.name.partition("/")[2]: tar.extractfile(each) for each in tar.getmembers()}
        texts = {name: found.read() for name, found in files.items() if found is not None}
    (line,) = texts[f"cluster/logs/{pod.name}.main.jsonl"].splitlines()
    assert json.loads(line) == {key: text for key, text in json.loads(LINE).items() if key != "url"}
    assert {"api"} & {each["check"] for each in json.loads(texts["cluster/doctor.json"])["findings"]} == set()
    assert not [name for name, text in texts.items() if b"hidden" in text]


@pytest.mark.extended("asks what `doctor` and `nodes` ask of a real API server, and unit tests of a fake one")
def test_pods_without_cards_held_none_and_the_fleet_is_looked_at(rig: Rig) -> None:
    config = config_of(rig.cluster)
    done = partage("usage", "-n", OUR_NAMESPACE, "--kubeconfig", config, "-o", "json")
    assert (done.returncode, json.loads(done.stdout)["pods"]) == (0, [])
    done = partage("doctor", "--fleet", "-o", "json", "--kubeconfig", config)
    checks = {each["check"]: each["status"] for each in json.loads(done.stdout)["findings"]}
    assert {"scheduler", "in-force", "inventory", "versions", "events"} <= checks.keys()
    assert "not checked" not in {checks["events"], checks["versions"]}
