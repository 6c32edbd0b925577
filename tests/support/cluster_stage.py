"""A cluster of the rig shared by the tests of a folder, and our daemons on its nodes.

Other stages derive from this one. A test finds no pods but its own, and leaves none to the next.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import Json
from rig.identity.people import TEAM
from rig.nodes.machine import Machine
from rig.nodes.node import ENDPOINT, Node
from rig.rig import Rig


@dataclass(frozen=True)
class Listed:
    """A container in the runtime's list."""

    id: str
    pod: str
    name: str
    running: bool


@dataclass
class ClusterStage:
    rig: Rig

    @property
    def node(self) -> Node:
        """The first node, the subject of most stages."""
        return next(iter(self.rig.nodes.values()))

    @property
    def machine(self) -> Machine:
        return self.node.machine

    @property
    def said(self) -> str:
        """The end of the logs of daemons outside the rig, for failure reports."""
        return ""

    def create_pod(self, name: str, **said: Any) -> Pod:
        """A pod of the team with exactly these fields."""
        return self.rig.cluster.pods.create(TEAM, a_pod(name, **said))

    def clear(self) -> None:
        """Delete the test's pods, all at once."""
        self.rig.cluster.pods.delete_made()

    def machine_of(self, pod: Pod) -> Machine:
        assert pod.node is not None
        return self.rig.nodes[pod.node].machine

    def crictl(self, *arguments: str, machine: Machine | None = None) -> str:
        """Run crictl against the runtime, bypassing crishim, on the stage's node or another."""
        program = str(self.rig.programs["crictl"])
        return (machine or self.machine).run(program, "--runtime-endpoint", ENDPOINT, "--timeout", "30s", *arguments)

    def containers(self) -> list[Listed]:
        found = json.loads(self.crictl("ps", "--all", "--output", "json"))["containers"]
        return [
            Listed(
                id=each["id"],
                pod=each["labels"]["io.kubernetes.pod.uid"],
                name=each["metadata"]["name"],
                running=each["state"] == "CONTAINER_RUNNING",
            )
            for each in found
        ]

    def running(self) -> list[Listed]:
        return [each for each in self.containers() if each.running]

    def kill_container(self, pod: Pod, container: str = "main") -> None:
        """Kill the container's process like a crash; kubelet may restart it."""
        before, machine = pod.container(container)["restartCount"], self.machine_of(pod)
        named = ("--label", f"io.kubernetes.pod.uid={pod.uid}", "--name", f"^{container}$")
        running = self.crictl("ps", "--quiet", *named, machine=machine).strip()
        self.crictl("stop", "--timeout", "0", running, machine=machine)

        def why_not(_: Json) -> str | None:
            status = pod.container(container)
            return None if status["restartCount"] > before or "running" not in status["state"] else "it runs"

        pod.wait(f"is known to have a {container} that ended", why_not)

    def inspected(self, pod: Pod) -> dict[str, Any]:
        """The runtime's details of the pod's running container."""
        container = next(each for each in self.running() if each.pod == pod.uid)
        found: dict[str, Any] = json.loads(self.crictl("inspect", container.id))["info"]
        return found
