"""A newer Docker with Compose: the bundle has a service's runtime, variables and annotations."""

from __future__ import annotations

import json

import pytest

from support.engines.docker import NEWER, Docker
from support.engines.recording import NAME, RecordingRuntime

FILE = "/etc/compose.json"
SERVICE = {
    "image": "busybox",
    "command": ["sleep", "100000"],
    "network_mode": "none",
    "runtime": NAME,
    "environment": {"PARTAGE_SHARE": "300"},
    "annotations": {"partage.dev/share": "300"},
}


@pytest.mark.extended("builds a newer Docker for minutes")
@pytest.mark.parametrize("site", [NEWER], indirect=True)
def test_a_service_of_compose_says_its_share_by_variables_or_annotations(
    docker: Docker, runtime: RecordingRuntime
) -> None:
    docker.machine.write(FILE, json.dumps({"services": {"train": SERVICE}}))
    up = docker.program("docker-compose", "-f", FILE, "up", "--detach", "--pull", "never")
    assert up.returncode == 0, up.stderr
    (container,) = docker.running()
    bundle = runtime.bundle(container)
    assert "PARTAGE_SHARE=300" in bundle["process"]["env"]
    assert bundle["annotations"]["partage.dev/share"] == "300"
