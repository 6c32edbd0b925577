"""The setting of the page "Install": a cluster to try it in, releases, and a reader's shell.

A release is made from a commit by `make bundle`: its images are in the rig's registry, its chart is in a folder.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from partage_bundle import cache
from partage_isolation.wire.messages import ContainerReport
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.identity.people import OUR_NAMESPACE, TEAM
from rig.nodes.machine import Machine
from rig.programs import ensure
from support import contents, page, systemd_node
from support.isolation_stage import limits_of
from support.page import Reader
from support.releases import Release
from trial.cluster import CUDA_PROGRAM, RUNS, Trial

WITHIN_S: Final = 240.0
_A_NODE: Final = "gpu-1"
_CHARTS: Final = (".cache/bundle/partage-VERSION/chart", ".cache/bundle/partage-NEW/chart")
"""Paths in the page that are replaced by the reader's own."""
_OF_DRAINING: Final = ("kubectl drain ", "kubectl uncordon ")
_WAITS: Final = ("sleep", "987654")
_LOOKED_AT: Final = "/etc /opt /usr/local/lib /var/lib /run/partage /run/cdi /run/systemd/system /run/systemd/transient"
_OTHERS: Final = "/var/lib/containerd /var/lib/kubelet /var/lib/cni /var/lib/partage-rig"
"""Folders of the runtime and of the rig; nodes share the rig's."""
_HASHED: Final = f"/etc /opt /usr/local/lib /var/lib/partage /run/partage /run/cdi {systemd_node.CONFIG}"
_SKIPPED: Final = " ".join(f"-path {each} -prune -o" for each in _OTHERS.split())
_FILES: Final = f"""
    find {_LOOKED_AT} {_SKIPPED} -printf '%y %m %U:%G %p %l\\n'
    find {_HASHED} -type f -exec sha256sum {{}} +
"""
_SERVICES: Final = """
    systemctl list-unit-files --no-legend
    systemctl list-units --all --plain --no-legend --type=service,socket,timer | cut -d ' ' -f 1
"""
_KUBELETS_OWN: Final = "kube-node-lease"
"""The namespace of heartbeats; the first one comes some time after the node is ready."""
_COMES_AND_GOES: Final = ("events", "events.events.k8s.io")


@dataclass
class StoryStage:
    trial: Trial
    reader: Reader
    releases: Sequence[Release]
    """One release, and the next."""
    followed: set[str] = field(default_factory=set[str])
    """Parts of the page."""

    def follow(self, part: str, *, nodes: Sequence[str] = (_A_NODE,), drained: bool = True, release: int = 0) -> str:
        """Run the commands of that part of the page, with these nodes and that release; returns all output."""
        self.followed.add(part)
        return "".join(
            self.reader.types(self._mine(command, nodes, release))
            for command in page.commands()[part]
            if drained or not command.startswith(_OF_DRAINING)
        )

    def _mine(self, command: str, nodes: Sequence[str], release: int) -> str:
        for each in _CHARTS:
            command = command.replace(each, str(self.releases[release].chart))
        return command.replace(_A_NODE, " ".join(nodes))

    def bystander(self, node: str, name: str) -> Pod:
        """A pod without cards."""
        return self.trial.rig.cluster.pods.create(TEAM, a_pod(name, image="busybox", command=_WAITS, node=node))

    def shared_pod(self, name: str, node: str | None = None) -> Pod:
        """A pod that runs a kernel on half a card, prints the time of that, and stays."""
        command = ["/bin/sh", "-c", RUNS]
        selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        limits = {"partage.dev/gpu-milli": "500", "partage.dev/gpu-memory": "4Gi"}
        wished = a_pod(
            name, image=CUDA_PROGRAM, command=command, scheduler="partage-scheduler", limits=limits, spec=selector
        )
        return self.trial.rig.cluster.pods.create(TEAM, wished)

    def pages_pod(self) -> Pod:
        return self.trial.rig.cluster.pods.get("default", "half")

    def kernel_at_s(self, pod: Pod) -> float:
        """The time when its first kernel had ended, in seconds since 1970."""
        pod.wait_running(within_s=WITHIN_S)
        pod.wait("has run a kernel", lambda _: None if pod.logs().strip() else "it has written nothing")
        said = pod.logs().strip()
        assert said.isdecimal(), said
        return int(said) / 1e9

    def limits_of(self, pod: Pod) -> ContainerReport:
        """The limits of the pod's container in the node's broker."""
        assert pod.node is not None
        return limits_of(self.trial.machines[pod.node], pod)

    def processes(self) -> dict[str, list[tuple[int, int]]]:
        """PIDs and start times of all users' container processes, by node."""
        return {name: systemd_node.processes(each, " ".join(_WAITS)) for name, each in self.trial.machines.items()}

    def restarts(self) -> dict[str, int]:
        """Restart counts of users' pods."""
        return {
            pod.name: sum(each["restartCount"] for each in pod.object["status"].get("containerStatuses", ()))
            for pod in self.trial.rig.cluster.pods.list(TEAM)
        }

    def files(self) -> dict[str, list[str]]:
        """What an installation may touch on each node: kinds, modes, owners, links and contents; and systemd units.

        A node sees the machine's own files where it has none. They are left out, because others may write them.
        """
        before = _listed(_FILES)
        found = {name: _listed(_FILES, machine) for name, machine in self.trial.machines.items()}
        of_machine = before | _listed(_FILES)
        return {
            name: sorted((lines - of_machine) | _listed(_SERVICES, self.trial.machines[name]))
            for name, lines in found.items()
        }

    def objects(self) -> list[str]:
        """All objects that the API server can list, with their content; of nodes only what heartbeats don't change."""
        kubectl = self.trial.rig.cluster.kubectl
        listed = kubectl.run("api-resources", "--verbs=list", "-o", "name").split()
        kinds = ",".join(kind for kind in listed if kind not in _COMES_AND_GOES)
        found = json.loads(kubectl.run("get", kinds, "--all-namespaces", "-o", "json"))["items"]
        others = (each for each in found if each["metadata"].get("namespace") != _KUBELETS_OWN)
        return sorted({*contents.lines(others), *(s for n in self.trial.machines for s in self._node(n))})

    def told(self) -> str:
        """State and logs of the cluster and the nodes' services, to diagnose a failure."""
        kubectl = self.trial.rig.cluster.kubectl
        pods = kubectl.tried("get", "pods", "-A", "-o", "wide").out
        events = kubectl.tried("get", "events", "-A", "--sort-by=.lastTimestamp").out[-8000:]
        logs = [
            f"--- {name}\n{kubectl.tried('logs', '-n', OUR_NAMESPACE, name, '--tail=40').out}"
            for name in kubectl.tried("get", "pods", "-n", OUR_NAMESPACE, "-o", "name").out.split()
        ]
        services = [f"--- {log}\n{log.read_text(errors='replace')[-6000:]}" for log in self.trial.logs]
        return "\n".join((pods, events, *logs, *services))

    def _node(self, name: str) -> list[str]:
        node: Any = self.trial.rig.cluster.nodes.get(name)
        metadata, status = node["metadata"], node["status"]
        return [
            *(f"node {name} label {k}={v}" for k, v in metadata["labels"].items()),
            *(f"node {name} annotation {k}={v}" for k, v in metadata.get("annotations", {}).items()),
            *(f"node {name} taint {each['key']}" for each in node["spec"].get("taints", ())),
            *(f"node {name} capacity {key}" for key in status["capacity"]),
            *(f"node {name} condition {each['type']}" for each in status["conditions"]),
        ]


def reader_of(trial: Trial, folder: Path, home: Path) -> Reader:
    """A reader who works in that folder on a workstation with kubectl, helm and a kubeconfig, but no partage."""
    programs = (trial.rig.programs["kubectl"], ensure("helm")["helm"])
    environment = {
        **os.environ,
        "HOME": str(home),
        "PARTAGE_BUNDLE_CACHE": str(cache.root()),
        "PATH": ":".join((*(str(program.parent) for program in programs), "/usr/sbin", "/usr/bin", "/sbin", "/bin")),
        "KUBECONFIG": str(trial.rig.cluster.kubectl.kubeconfig),
    }
    return Reader(folder, environment)


def _listed(script: str, machine: Machine | None = None) -> set[str]:
    """Output lines of a script that ignores missing files, run on a node or on this machine."""
    way_in = machine.way_in if machine else ()
    argv = (*way_in, "sh", "-c", f"({script}) 2>/dev/null; true")
    return set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines())
