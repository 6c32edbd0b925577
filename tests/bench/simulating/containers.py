"""The same program in containers of a real runtime, with a simulated card as NVIDIA's container tool describes it.

The runtime is on a machine of the rig. simgpud is not, as a kernel is below all containers: so both it and this process
know a program in a container by the same pid, which is neither the runtime's nor the program's own.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.simulating.churn import Started
from rig import images
from rig.client.wait import until
from rig.images.image import layout
from rig.lone import LoneRuntime
from rig.machine.cgroups import hierarchies
from rig.programs import ensure
from support.simgpu import SimulatedNode, built
from support.simgpu_stage import RESOURCE, generate_cdi

_IMAGE: Final = "partage.dev/allocate:1"
_PROGRAM: Final = "/usr/bin/allocate"
_NAMESPACE: Final = "k8s.io"
"""Of containerd. The rig takes back the cgroups of this one."""
_QUIET: Final = {"CONTAINERD_SUPPRESS_DEPRECATION_WARNINGS": "1"}
"""Each ctr would say what the machine's cgroups are."""


class Containers:
    def __init__(self, runtime: LoneRuntime) -> None:
        self._runtime = runtime

    def start(self, arguments: Sequence[str]) -> Started:
        """`allocate` in a new container, once it runs there or has ended: a full card does not let it begin."""
        container = uuid.uuid4().hex
        options = ("--rm", "--device", f"{RESOURCE}=0")
        process = subprocess.Popen(
            [
                *self._runtime.machine.way_in,
                *_ctr(self._runtime, "run", *options, _IMAGE, container, _PROGRAM, *arguments),
            ],
            bufsize=0,
            env={**os.environ, **_QUIET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

        def why_not() -> str | None:
            return None if process.poll() is not None or _pid_in(container) else "its cgroup has no such process"

        until(f"container {container} runs {_PROGRAM}", why_not)
        return Started(process, _pid_in(container) or process.pid)

    def pids(self) -> set[int]:
        """The programs in all containers that the runtime has."""
        listed = self._runtime.machine.run(*_ctr(self._runtime, "tasks", "list", "--quiet")).split()
        return {pid for container in listed if (pid := _pid_in(container))}


def containers_of(runtime: LoneRuntime, node: SimulatedNode) -> Containers:
    """Containers that can have the first card of the node, which lies where the runtime's machine sees it, too."""
    ensure("nvidia")  # says on stderr what it makes: what is found goes to stdout
    generate_cdi(runtime.machine, str(node.root))
    archive = runtime.scratch / "image.tar"
    archive.write_bytes(layout({_IMAGE: images.glibc().with_files({_PROGRAM: built() / "allocate"})}))
    runtime.machine.run(*_ctr(runtime, "images", "import", str(archive)))
    return Containers(runtime)


def _ctr(runtime: LoneRuntime, *arguments: str) -> tuple[str, ...]:
    program = str(runtime.programs["ctr"])
    return (program, "--address", runtime.socket, "--namespace", _NAMESPACE, *arguments)


def _pid_in(container: str) -> int | None:
    """The program's. The runtime's own helpers are in the container's cgroup, too, before the program is."""
    for hierarchy in hierarchies():
        with contextlib.suppress(OSError):  # it is not there yet, or not any more
            for pid in (hierarchy / _NAMESPACE / container / "cgroup.procs").read_text().split():
                if Path(f"/proc/{pid}/exe").readlink().name == Path(_PROGRAM).name:
                    return int(pid)
    return None
