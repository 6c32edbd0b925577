"""A real containerd gives a container exactly the cards that the node plugin names.

The node has a simulated driver in a folder of its own: two cards whose device nodes are /dev/zero under other names,
and libraries that are text files. Containers are created as crishim would: with the plugin's adjustment in a request.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from partage_plugins.api import Adjustment
from rig import images
from rig.errors import ComponentFailed
from rig.lone import CHECKOUT, LoneRuntime, lone_runtime
from rig.programs import ensure
from unit.gpu_node.nodes import CARDS, FIRST, SAMPLES, SECOND, information, part

DRIVER = "/run/nvidia/driver"
SHARED = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}


@pytest.fixture(scope="module")
def runtime() -> Iterator[LoneRuntime]:
    with lone_runtime({"busybox": images.busybox(), "glibc": images.glibc()}, say=print) as runtime:
        _install_driver(runtime)
        yield runtime


@pytest.fixture(autouse=True)
def no_spec_is_left(runtime: LoneRuntime) -> Iterator[None]:
    yield
    runtime.machine.run("sh", "-c", "rm -f /etc/cdi/* /var/run/cdi/*")


def _install_driver(runtime: LoneRuntime) -> None:
    """Install the files that NVIDIA's document of these cards names, and the kernel's facts about them."""
    machine, document = runtime.machine, json.loads((SAMPLES / "nvidia.json").read_text())
    machine.run("mkdir", "-p", "/etc/cdi", "/var/run/cdi", f"{DRIVER}/dev")
    for name in ("nvidia0", "nvidia1", *SHARED):
        machine.run("mknod", f"{DRIVER}/dev/{name}", "c", "1", "5")
    for mount in document["containerEdits"]["mounts"]:
        machine.write(mount["hostPath"], mount["hostPath"].rpartition("/")[2].partition(".")[0])
    for address, minor, card in (("0000:18:00.0", 1, FIRST), ("0000:19:00.0", 0, SECOND)):
        machine.write(f"{DRIVER}/proc/driver/nvidia/gpus/{address}/information", information(minor, address, card))


def adjusted(runtime: LoneRuntime, *cards: str, **settings: str) -> Adjustment:
    """The plugin's answer on the node."""
    request = {"part": msgspec.to_builtins(part(*CARDS)), "cards": cards}
    env = [f"{name}={value}" for name, value in {"PARTAGE_DRIVER_ROOT": DRIVER, **settings}.items()]
    env += [f"PYTHONPATH={CHECKOUT}/plugins"]
    script = str(Path(__file__).with_name("adjusting.py"))
    return msgspec.json.decode(
        runtime.machine.run("env", *env, sys.executable, script, json.dumps(request)), type=Adjustment
    )


def created(
    runtime: LoneRuntime, adjustment: Adjustment, *, image: str = "busybox", env: Mapping[str, str] | None = None
) -> AbstractContextManager[str]:
    """A running container to which the adjustment was applied."""
    given = {**(env or {}), **adjustment.env}
    return runtime.container(
        image,
        envs=[{"key": name, "value": value} for name, value in given.items()],
        mounts=[msgspec.to_builtins(mount) for mount in adjustment.mounts],
        devices=[msgspec.to_builtins(device) for device in adjustment.devices],
        CDI_devices=[{"name": name} for name in adjustment.cdi],
    )


def nodes(runtime: LoneRuntime, container: str) -> set[str]:
    return set(runtime.shell(container, "cd /dev; ls -d nvidia*").split())


@pytest.mark.parametrize("way", ["cdi", "raw"])
def test_a_container_has_its_card_and_the_driver_and_no_other_card(runtime: LoneRuntime, way: str) -> None:
    adjustment = adjusted(runtime, FIRST, PARTAGE_GPU_ATTACH=way)
    with created(runtime, adjustment, env={"NVIDIA_VISIBLE_DEVICES": "all"}) as container:
        assert nodes(runtime, container) == {"nvidia1", *SHARED} - {"nvidia-modeset"}
        assert runtime.shell(container, "head -c 3 /dev/nvidia1 | od -An -tx1").split() == ["00"] * 3
        assert runtime.shell(container, "cat /usr/lib64/libcuda.so.1") == "libcuda"
        assert runtime.shell(container, "echo $NVIDIA_VISIBLE_DEVICES") == "void"


@pytest.mark.parametrize("way", ["cdi", "raw"])
def test_the_device_cgroup_lets_in_no_other_card(runtime: LoneRuntime, way: str) -> None:
    """A container may make any device node; the kernel decides which it can open."""
    runtime.machine.run("sh", "-c", f"rm {DRIVER}/dev/nvidia0 && mknod {DRIVER}/dev/nvidia0 c 1 11")  # as /dev/kmsg
    try:
        with created(runtime, adjusted(runtime, FIRST, PARTAGE_GPU_ATTACH=way)) as container:
            script = "mknod /dev/other c 1 11 && (head -c 1 </dev/other) 2>&1 || true"
            assert "Operation not permitted" in runtime.shell(container, script)
    finally:
        runtime.machine.run("sh", "-c", f"rm {DRIVER}/dev/nvidia0 && mknod {DRIVER}/dev/nvidia0 c 1 5")


def test_what_nvidias_own_tool_wrote_reaches_the_container_by_our_kind(runtime: LoneRuntime) -> None:
    """The unmodified document, with its hooks, which make the links to the libraries that programs load."""
    hook = ensure("nvidia", say=print)["nvidia-cdi-hook"]
    document = (SAMPLES / "nvidia.yaml").read_text().replace("/usr/bin/nvidia-cdi-hook", str(hook))
    runtime.machine.write("/etc/cdi/nvidia.yaml", document)
    with created(runtime, adjusted(runtime, SECOND), image="glibc") as container:
        assert nodes(runtime, container) == SHARED | {"nvidia0"}
        assert runtime.shell(container, "cat /usr/lib/x86_64-linux-gnu/libcuda.so.1") == "libcuda"
        assert runtime.shell(container, "echo $NVIDIA_CTK_LIBCUDA_DIR") == "/usr/lib/x86_64-linux-gnu"


def test_a_card_that_our_kind_does_not_have_starts_nothing(runtime: LoneRuntime) -> None:
    adjusted(runtime, FIRST)
    unknown = Adjustment(cdi=("partage.dev/gpu=GPU-none",))
    with (
        pytest.raises(ComponentFailed, match=r"unresolvable CDI devices partage.dev/gpu=GPU-none"),
        created(runtime, unknown),
    ):
        pass


def test_a_spec_that_was_removed_is_back_for_the_next_container(runtime: LoneRuntime) -> None:
    adjusted(runtime, FIRST)
    runtime.machine.run("rm", "/var/run/cdi/partage.dev-gpu.json")
    with created(runtime, adjusted(runtime, FIRST)) as container:
        assert "nvidia1" in nodes(runtime, container)
