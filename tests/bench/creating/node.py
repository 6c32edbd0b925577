"""A node with eight made-up cards, crishim in front of its runtime, and clients of both."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.creating.requests import IMAGE, NODE, Made
from partage_base.cri import RuntimeClient, UnaryClient
from partage_base.keyring import encode_public
from partage_plugins.api import GPU, GpuPart, Inventory
from partage_plugins.api.keys import CONTAINER
from partage_plugins.codecs import encode_inventory, key_id
from rig import images
from rig.lone import LoneRuntime, lone_runtime
from rig.nodes.machine import Machine
from support.crishim import SOCKET, crishim, figures, in_front
from support.wire import all_of, field
from unit.gpu_node.nodes import LIBRARIES, VERSION, card, information

Way = Literal["straight", "through"]
CARDS: Final = tuple(
    card(f"GPU-00000000-0000-4000-8000-{index:012d}", index, f"0000:{0x18 + index:02x}:00.0") for index in range(8)
)
_DRIVER: Final = "/run/nvidia/driver"
_ENVIRONMENT: Final = {"PARTAGE_DRIVER_ROOT": _DRIVER, "PARTAGE_PLUGINS_BLOCK": "isolation"}
"""No broker runs here: the cost of isolation is measured elsewhere."""
_SERVICE: Final = "/runtime.v1.RuntimeService/"
_IMAGE_STATUS: Final = "/runtime.v1.ImageService/ImageStatus"
KUBELETS_PAUSE_S: Final = 0.003
"""Between two of kubelet's calls around a create; 1 to 6 ms were observed with kubelet 1.36."""
_DEADLINE_S: Final = 20.0


@dataclass(frozen=True)
class BenchNode:
    machine: Machine
    key: Ed25519PrivateKey
    clients: Mapping[Way, UnaryClient]

    def figures(self) -> dict[str, float]:
        return figures(self.machine)

    async def sandbox(self, way: Way, pod: Made) -> str:
        """A running sandbox of the pod; its status is queried, as kubelet does before it creates containers."""
        sandbox = _id(await self._call(way, "RunPodSandbox", pod.run()))
        await self._call(way, "PodSandboxStatus", field(1, sandbox))
        return sandbox

    async def create(self, way: Way, request: bytes) -> tuple[str, int]:
        """The container, and the nanoseconds of its create; kubelet queries the image before, and then its user."""
        for _ in range(2):
            await asyncio.sleep(KUBELETS_PAUSE_S)
            await self.clients[way].call(_IMAGE_STATUS, field(1, field(1, IMAGE)), deadline_s=_DEADLINE_S)
        await asyncio.sleep(KUBELETS_PAUSE_S)
        began = time.perf_counter_ns()
        answer = await self._call(way, "CreateContainer", request)
        return _id(answer), time.perf_counter_ns() - began

    async def remove(self, *sandboxes: str) -> None:
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            await asyncio.gather(*(self._call("straight", method, field(1, sandbox)) for sandbox in sandboxes))

    async def annotated(self) -> dict[str, str]:
        """Annotations by crishim, by container id; without containers that have none."""
        found = await RuntimeClient(self.clients["straight"]).containers()
        return {each.id: each.annotations[CONTAINER] for each in found if CONTAINER in each.annotations}

    async def _call(self, way: Way, method: str, request: bytes) -> bytes:
        return await self.clients[way].call(_SERVICE + method, request, deadline_s=_DEADLINE_S)


@contextmanager
def serving() -> Generator[BenchNode]:
    """A ready node; parts of cards are granted though nothing on it enforces them."""
    key = Ed25519PrivateKey.generate()
    with lone_runtime({IMAGE: images.busybox()}, say=lambda _: None) as runtime:
        _furnish(runtime.machine, key)
        _pull(runtime)
        daemon = crishim("--enforce", "advisory", node=NODE, env=_ENVIRONMENT)
        with in_front(runtime.machine, daemon):
            paths: dict[Way, str] = {"straight": runtime.socket, "through": SOCKET}
            yield BenchNode(runtime.machine, key, {way: _client(runtime, path) for way, path in paths.items()})


def _furnish(machine: Machine, key: Ed25519PrivateKey) -> None:
    """Adds inventory, key and a driver, whose device nodes are /dev/zero; /run is in memory, as on every node."""
    machine.run("sh", "-c", "mkdir -p /run/partage && mount -t tmpfs partage /run/partage")
    part = GpuPart(driver=VERSION, cuda="13.0", cards=CARDS)
    machine.write("/run/partage/inventory.json", encode_inventory(Inventory(kinds={GPU.name: part})).decode())
    public = key.public_key()
    machine.write(f"/etc/partage/keys.d/{key_id(public)}.pub", encode_public(public).decode())
    machine.run("mkdir", "-p", f"{_DRIVER}/dev", "/etc/cdi", "/var/run/cdi")
    for name in (*(f"nvidia{each.index}" for each in CARDS), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
        machine.run("mknod", f"{_DRIVER}/dev/{name}", "c", "1", "5")
    for library in LIBRARIES:
        machine.write(f"{_DRIVER}/usr/lib/{os.uname().machine}-linux-gnu/{library}.so.{VERSION}", library)
    for each in CARDS:
        path = f"{_DRIVER}/proc/driver/nvidia/gpus/{each.pci}/information"
        machine.write(path, information(each.index, each.pci, each.id))


def _client(runtime: LoneRuntime, socket: str) -> UnaryClient:
    return UnaryClient(runtime.machine.path(socket))


def _pull(runtime: LoneRuntime) -> None:
    endpoint = f"unix://{runtime.socket}"
    crictl = str(runtime.programs["crictl"])
    runtime.machine.run(crictl, "--runtime-endpoint", endpoint, "--image-endpoint", endpoint, "pull", IMAGE)


def _id(answer: bytes) -> str:
    return all_of(answer, 1)[0].decode()
