"""A cluster of the rig that tests of a folder share, and the parts of ours that run on its nodes.

Other stages derive from this one by what they add. A test finds no pod but its own, and none of them is left to the
next.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rig.client.pods import Pod
from rig.nodes.machine import Machine
from rig.nodes.node import ENDPOINT, Node
from rig.rig import Rig


@dataclass(frozen=True)
class Listed:
    """A container, as the runtime lists it."""

    id: str
    pod: str
    name: str
    running: bool


@dataclass
class ClusterStage:
    rig: Rig

    @property
    def node(self) -> Node:
        """The first, which most stages are about."""
        return next(iter(self.rig.nodes.values()))

    @property
    def machine(self) -> Machine:
        return self.node.machine

    @property
    def said(self) -> str:
        """The end of what daemons beside the rig wrote, for the report of a failure."""
        return ""

    def clear(self) -> None:
        """Ends the test's pods, all at once."""
        self.rig.cluster.pods.delete_made()

    def machine_of(self, pod: Pod) -> Machine:
        assert pod.node is not None
        return self.rig.nodes[pod.node].machine

    def crictl(self, *arguments: str, machine: Machine | None = None) -> str:
        """Past crishim, on the node that the stage is about or on another."""
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

    def inspected(self, pod: Pod) -> dict[str, Any]:
        """What the runtime tells of a container of the pod that runs."""
        container = next(each for each in self.containers() if each.pod == pod.uid and each.running)
        found: dict[str, Any] = json.loads(self.crictl("inspect", container.id))["info"]
        return found
