"""NVIDIA's own container runtime below ours: it attaches the card of a container with a share, and the share holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from real.docker.conftest import LOGS
from rig.programs import ensure
from support.engine_stage import PROGRAM, RUNTIME, VISIBLE, install_program, shares_on
from support.engines.docker import DEBIANS, Docker, dockerd_on
from support.engines.engine import engine_programs
from support.engines.machines import engine_machines
from support.machine_image import workloads
from support.simgpu_stage import CDI, DRIVER, generate_cdi

pytestmark = pytest.mark.timeout(300)
SHARE: Final = ("--runtime", RUNTIME, "-e", "PARTAGE_SHARE=300", "-e", "PARTAGE_MEMORY=4g")
LARGE: Final = ("allocate", "--kind", "large", "--count", "1")
CONFIG: Final = """\
[nvidia-container-cli]
root = "{driver}"
[nvidia-container-runtime]
mode = "cdi"
runtimes = ["{runc}"]
[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
spec-dirs = ["{cdi}"]
"""


@pytest.fixture
def docker() -> Iterator[Docker]:
    programs, nvidia = engine_programs(DEBIANS), ensure("nvidia", say=print)
    visible = {*programs.folders, *nvidia.folders, *VISIBLE}
    with engine_machines(visible=visible, keep_logs=LOGS) as (machine,):
        install_program(machine, programs["runc"])
        flags = ("--nvidia-runtime", str(nvidia["nvidia-container-runtime"]))
        settings = {"runtimes": {RUNTIME: {"path": PROGRAM}}}
        with shares_on(machine, "h100", "h100", flags=flags), dockerd_on(machine, settings) as docker:
            generate_cdi(machine)
            config = CONFIG.format(driver=DRIVER, runc=programs["runc"], cdi=CDI)
            machine.write("/etc/nvidia-container-runtime/config.toml", config)
            docker.load({"tools": workloads()})
            yield docker


def test_nvidias_runtime_attaches_the_card_of_a_share_which_holds_and_of_nobody_else(docker: Docker) -> None:
    container = docker.run("-d", *SHARE, "tools", "sleep", "100000")
    cards = [name for name in docker.said("exec", container, "ls", "/dev").split() if name.startswith("nvidia")]
    assert len({name for name in cards if name.removeprefix("nvidia").isdecimal()}) == 1, cards
    assert docker.done("exec", container, *LARGE, "--mib", "1024").returncode == 0
    assert docker.done("exec", container, *LARGE, "--mib", "4096").returncode != 0
    asks_nvidia_alone = ("--runtime", RUNTIME, "-e", "NVIDIA_VISIBLE_DEVICES=all")
    assert "nvidia" not in docker.run("--rm", *asks_nvidia_alone, "tools", "ls", "/dev")
