"""NVIDIA's container tools accept a simulated driver as their own: by CDI in containerd, and by their runtime."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rig.lone import LoneRuntime
from rig.machine.components import Component, serving
from rig.nodes.node import inside
from rig.programs import ensure
from support.simgpu_stage import CDI, DRIVER, UUIDS, generate_cdi, simgpud, tell


@pytest.fixture(scope="module")
def driver(runtime: LoneRuntime) -> Iterator[Component]:
    with serving(inside(runtime.machine, simgpud())) as started:
        yield started


@pytest.fixture(scope="module")
def document(runtime: LoneRuntime, driver: Component) -> dict[str, Any]:
    """The document that nvidia-ctk wrote."""
    return generate_cdi(runtime.machine)


def said_with(runtime: LoneRuntime, *devices: str) -> str:
    """Output of the client in a container with these devices."""
    with runtime.container("cards", CDI_devices=[{"name": name} for name in devices]) as container:
        return runtime.shell(container, "/usr/bin/cards || true")


def cards_in(said: str) -> list[str]:
    return re.findall(r"^nvml (\S+)", said, flags=re.MULTILINE)


def test_nvidias_tool_describes_every_card_and_mounts_the_socket(document: dict[str, Any]) -> None:
    names = {device["name"] for device in document["devices"]}
    assert names == {"0", "1", "all", *UUIDS}
    mounts = {mount["containerPath"]: mount["hostPath"] for mount in document["containerEdits"]["mounts"]}
    assert mounts["/run/nvidia-persistenced/socket"] == f"{DRIVER}/run/nvidia-persistenced/socket"
    libraries = {path.rpartition("/")[2].partition(".")[0] for path in mounts if path.startswith("/usr/lib")}
    assert libraries == {"libcuda", "libnvidia-ml"}


@pytest.mark.parametrize(
    ("device", "expected"), [("0", UUIDS[:1]), ("1", UUIDS[1:]), (UUIDS[1], UUIDS[1:]), ("all", UUIDS)]
)
def test_containerd_injects_the_card_that_is_named(
    runtime: LoneRuntime, document: dict[str, Any], device: str, expected: tuple[str, ...]
) -> None:
    assert cards_in(said_with(runtime, f"nvidia.com/gpu={device}")) == list(expected)


def test_nvidias_own_runtime_in_cdi_mode_gives_the_card_that_the_environment_names(
    runtime: LoneRuntime, document: dict[str, Any]
) -> None:
    program = ensure("nvidia", say=print)["nvidia-container-runtime"]
    runtime.machine.write("/etc/nvidia-container-runtime/config.toml", _runtime_config(runtime))
    runtime.crictl("pull", "cards")
    image = json.loads(runtime.crictl("images", "--output", "json"))["images"]
    name = next(tag for each in image for tag in each["repoTags"] if "/cards:" in tag)
    ctr = (str(runtime.programs["ctr"]), "--address", runtime.socket, "--namespace", "k8s.io")
    flags = ("--rm", "--runc-binary", str(program), "--env", f"NVIDIA_VISIBLE_DEVICES={UUIDS[1]}")
    said = runtime.machine.run(*ctr, "run", *flags, name, "by-runtime", "/usr/bin/cards")
    assert cards_in(said) == [UUIDS[1]]


def _runtime_config(runtime: LoneRuntime) -> str:
    return f"""
[nvidia-container-cli]
root = "{DRIVER}"
[nvidia-container-runtime]
mode = "cdi"
runtimes = ["{runtime.programs["runc"]}"]
[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
spec-dirs = ["{CDI}"]
"""


def test_a_container_is_told_that_its_card_is_lost(runtime: LoneRuntime, document: dict[str, Any]) -> None:
    tell(runtime.machine, "lose 1")
    try:
        assert said_with(runtime, "nvidia.com/gpu=1") == "nvmlDeviceGetHandleByIndex_v2 answered 15"
        assert cards_in(said_with(runtime, "nvidia.com/gpu=0")) == [UUIDS[0]]
    finally:
        tell(runtime.machine, "restore 1")
