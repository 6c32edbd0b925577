"""A boot of a machine with systemd and Docker: a restarted container has its share, and nothing else is held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from rig.client.wait import until
from rig.rig import CHECKOUT
from support.engines.docker import DEBIANS
from support.engines.engine import Engine, cgroup_of, engine_programs, path_of
from support.machine_image import workloads
from support.systemd_stage import SystemdStage, systemd_machine

pytestmark = pytest.mark.timeout(300)

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-boot"
CONFIG: Final = "/etc/docker/daemon.json"
UNIT: Final = """\
[Unit]
After=network.target
[Service]
Type=notify
Environment=PATH={path}
ExecStart={dockerd} --config-file {config}
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
Delegate=yes
[Install]
WantedBy=multi-user.target
"""
SETTINGS: Final = {
    "data-root": "/var/lib/engines/docker",
    "storage-driver": "overlay2",
    "exec-opts": ["native.cgroupdriver=cgroupfs"],
    "bridge": "none",
    "iptables": False,
    "ip-forward": False,
    "userland-proxy": False,
}
SHARE: Final = ("--runtime", "partage", "-e", "PARTAGE_SHARE=700", "-e", "PARTAGE_MEMORY=4g")
LARGE: Final = ("allocate", "--kind", "large", "--count", "1")


@dataclass(frozen=True)
class Stage:
    systemd: SystemdStage
    docker: Engine


@pytest.fixture
def stage() -> Iterator[Stage]:
    programs = engine_programs(DEBIANS)
    path = path_of(programs)
    with systemd_machine(say=print, keep_logs=LOGS, visible=programs.folders) as systemd:
        machine, docker = systemd.machine, Engine(systemd.machine, "docker", {"PATH": path, "HOME": "/root"})
        dockerd = programs["dockerd" if "dockerd" in programs else "dockerd@docker.io"]
        machine.write(CONFIG, json.dumps({**SETTINGS, "cgroup-parent": cgroup_of(machine)}))
        machine.write("/etc/systemd/system/docker.service", UNIT.format(path=path, dockerd=dockerd, config=CONFIG))
        systemd.systemctl("enable", "--now", "docker")
        docker.load({"tools": workloads()})
        systemd.up("--simulated", "h100")
        done = systemd.partage("docker", "install", "--engine", "docker", "--runtime-below", str(programs["runc"]))
        assert done.returncode == 0, done.stderr + systemd.told()
        yield Stage(systemd, docker)


@pytest.mark.extended("boots a machine with Docker; that an agent waits and takes over is tested without a boot")
def test_a_boot_gives_who_is_restarted_its_share_and_holds_nothing_for_others(stage: Stage) -> None:
    docker = stage.docker
    docker.run("-d", "--name", "ends", *(word.replace("700", "200") for word in SHARE), "tools", "sleep", "100000")
    kept = docker.run("-d", "--name", "kept", "--restart", "always", *SHARE, "tools", "sleep", "100000")
    stage.systemd.reboot()
    until("the container is back", lambda: why_not_running(docker, kept))
    (found,) = json.loads(stage.systemd.partage("ps", "-o", "json").stdout)["containers"]
    assert (found["id"], found["share_milli"], found["memory_bytes"]) == (kept, 700, 4 << 30)
    assert docker.done("exec", "kept", *LARGE, "--mib", "1024").returncode == 0
    assert docker.done("exec", "kept", *LARGE, "--mib", "5000").returncode != 0


def why_not_running(docker: Engine, container: str) -> str | None:
    done = docker.done("ps", "-a", "--no-trunc", "--filter", f"id={container}", "--format", "{{.Status}}")
    return None if done.stdout.startswith("Up") else done.stdout + done.stderr
