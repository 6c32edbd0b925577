"""A runtime with nothing in front of it and no kubelet beside it: one machine with containerd, and a registry.

critest wants to be its runtime's only client, and benchmarks of a proxy want to be its only client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rig import images
from rig.images import Image
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean
from rig.machine.components import Component, serving
from rig.nodes.containerd import SOCKET
from rig.nodes.machine import Machine, Place, require_fit
from rig.nodes.node import runtime
from rig.programs import Programs, ensure
from rig.registry import Registry

CHECKOUT = Path(__file__).parents[2]
_POD: Final = {
    "metadata": {"name": "pod", "namespace": "team", "uid": "1", "attempt": 0},
    "linux": {"security_context": {"namespace_options": {"network": 2}}},
}
_SLEEPS: Final = {"metadata": {"name": "main", "attempt": 0}, "command": ["/bin/sleep", "600"]}


@dataclass(frozen=True)
class LoneRuntime:
    """Where it is, and with what it was made."""

    machine: Machine
    containerd: Component
    registry: Registry
    programs: Programs
    socket: str = SOCKET

    @property
    def scratch(self) -> Path:
        """A folder at the same path inside and outside; it goes with the runtime."""
        return self.machine.place.run_folder / "scratch"

    def crictl(self, *argv: str) -> str:
        endpoint = f"unix://{self.socket}"
        flags = ("--runtime-endpoint", endpoint, "--image-endpoint", endpoint, "--timeout", "30s")
        return self.machine.run(str(self.programs["crictl"]), *flags, *argv).strip()

    @contextmanager
    def container(self, image: str, **config: Any) -> Generator[str]:
        """The id of one that runs, with these fields of CRI; it goes with its pod."""
        whole = {**_SLEEPS, "image": {"image": image}, **config}
        files = [self.scratch / name for name in ("pod.json", "container.json")]
        self.scratch.mkdir(exist_ok=True)
        for file, content in zip(files, (_POD, whole), strict=True):
            file.write_text(json.dumps(content))
        self.crictl("pull", image)
        pod = self.crictl("runp", str(files[0]))
        try:
            container = self.crictl("create", pod, str(files[1]), str(files[0]))
            self.crictl("start", container)
            yield container
        finally:
            self.crictl("rmp", "--force", pod)

    def shell(self, container: str, script: str) -> str:
        return self.crictl("exec", "--sync", container, "/bin/sh", "-c", script)


@contextmanager
def lone_runtime(
    stock: Mapping[str, Image], *, say: Callable[[str], None], releases: Sequence[str] = ()
) -> Generator[LoneRuntime]:
    """A runtime that serves; its registry holds the stock, by name, and the sandbox's image."""
    require_fit()
    programs = ensure("default", *releases, say=say)
    with slots.claimed(clean) as slot:
        addresses = Addresses(slot.number)
        network.make_bridge(addresses, str(slot.folder))
        registry = Registry(str(addresses.host))
        place = Place(
            "lone", slot.folder / "nodes/lone", slot.folder / "logs", slot.folder, (CHECKOUT, *programs.folders)
        )
        machine = Machine(place, addresses.node(1))
        with serving(registry.component(programs["docker-registry"], slot.folder)), _on(machine):
            for name, image in {images.SANDBOX: images.pause(), **stock}.items():
                registry.push(image, name)
            network.connect(addresses, machine, [], str(slot.folder))
            with serving(runtime(machine, programs, registry)) as containerd:
                yield LoneRuntime(machine, containerd, registry, programs)


@contextmanager
def _on(machine: Machine) -> Generator[None]:
    machine.start()
    try:
        yield
    finally:
        machine.stop()
