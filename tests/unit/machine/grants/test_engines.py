"""Engines that can't take a grant are told why, in a sentence that says what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partage_cli.machine.grants.engines import why_not

FOLDERS = ["/etc/cdi", "/var/run/cdi"]


def docker(version: str = "28.2.2", **said: Any) -> bytes:
    """As docker 28 says it."""
    known = {"ID": "x", "ServerVersion": version, "CDISpecDirs": FOLDERS, "SecurityOptions": ["name=seccomp"]}
    return json.dumps(known | said).encode()


def podman(version: str = "4.3.1", *, rootless: bool = False) -> bytes:
    """As podman 4.3 says it."""
    return json.dumps({"host": {"security": {"rootless": rootless}}, "version": {"Version": version}}).encode()


@pytest.mark.parametrize("version", ["25.0.0", "25.0.5-rd", "26.1.5+dfsg1", "28.2.2", "100.0.0", "dev"])
def test_a_docker_that_reads_our_folder_can(version: str) -> None:
    assert why_not("docker", docker(version), "") is None


@pytest.mark.parametrize("version", ["4.1.0", "4.3.1", "5.0.0-dev", "5.4.2"])
def test_a_podman_from_4_1_on_can(version: str) -> None:
    assert why_not("podman", podman(version), "") is None


def test_podman_by_the_name_of_docker_is_podman() -> None:
    assert why_not("docker", podman(), "") is None


@pytest.mark.parametrize(
    ("info", "says"),
    [
        (
            docker("24.0.7", CDISpecDirs=None),
            "docker 24.0.7 puts no CDI devices into containers; 25 is the first that can: upgrade it",
        ),
        (docker("20.10.24+dfsg1", CDISpecDirs=None), "25 is the first that can"),
        (docker(CDISpecDirs=[]), '{"features": {"cdi": true}} in /etc/docker/daemon.json'),
        (docker(CDISpecDirs=None), "is not set to put CDI devices into containers"),
        (docker(CDISpecDirs=["/srv/cdi"]), "in /srv/cdi alone: add /var/run/cdi to cdi-spec-dirs"),
        (docker(SecurityOptions=["name=rootless"]), "use a docker that runs as root"),
        (docker("", ServerErrors=["Cannot connect"]), "docker's daemon does not answer: Cannot connect"),
        (docker(""), "docker's daemon does not answer: it is down"),
        (podman("4.0.3"), "podman 4.0.3 puts no CDI devices into containers; 4.1 is the first that does: upgrade it"),
        (podman(rootless=True), "run the container with sudo podman"),
    ],
)
def test_what_can_not_says_what_to_do(info: bytes, says: str) -> None:
    name = "podman" if b'rootless": ' in info else "docker"
    why = why_not(name, info, "it is down")  # type: ignore[arg-type]  # one of the two
    assert why is not None
    assert says in why
    assert "\n" not in why


@pytest.mark.parametrize("info", [b"", b"nonsense", b"[]", b'{"version": 1, "ServerVersion": 2}', b"\xff"])
def test_what_can_not_be_read_is_said_to_be_so(info: bytes) -> None:
    why = why_not("docker", info, "")
    assert why is not None
    assert "is it docker?" in why or "does not answer" in why
