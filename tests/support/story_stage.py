"""A cluster of real nodes with simulated cards and nothing of partage, and releases of partage to install in it.

Nodes have systemd, containerd and kubelet as any host has, and no Python. A release is what `make bundle` makes of a
commit: its images are in the rig's registry, its chart lies in a folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from partage_isolation.wire.messages import ContainerTold
from partage_simgpu.driver_root import SIMGPUD
from rig import images
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.control.settings import APISERVER_PORT, ControlSettings
from rig.identity.people import OUR_NAMESPACE, TEAM
from rig.images.bases import compiled
from rig.machine.addresses import SERVICES
from rig.nodes.machine import Machine
from rig.patience import patience_s
from rig.rig import CHECKOUT, Rig, RigSettings, running
from support import contents, page, systemd_node
from support.chart import Helm, helm_in, remove_delivered
from support.install_stage import give_address
from support.isolation_stage import told_by
from support.releases import Release, clone, release
from support.simgpu_stage import DRIVER, generate_cdi, install_driver

IMAGE: Final = "first"
WITHIN_S: Final = 240.0
_TYPED_WITHIN_S: Final = 900.0
"""A command waits for all nodes, one after the other; what it may take is for others to judge."""
_PAGES_IMAGE: Final = "registry.example/cuda-program"
_A_NODE: Final = "gpu-1"
_CHARTS: Final = ("./partage-VERSION/chart", "./partage-NEW/chart")
"""These stand in the page for what its reader has."""
_PROGRAM: Final = Path(__file__).parents[1] / "real/chain/c/first.c"
_FIRST: Final = "/usr/bin/first"
_WAITS: Final = ("sleep", "987654")
_RUNS: Final = f"{_FIRST} kernel && exec {' '.join(_WAITS)}"
_DRIVER_UNIT: Final = f"""\
[Service]
ExecStart={DRIVER}/{SIMGPUD} {DRIVER}
Restart=always
"""
_LOOKED_AT: Final = "/etc /opt /usr/local/lib /var/lib /run/partage /run/cdi /run/systemd/system /run/systemd/transient"
_OTHERS: Final = "/var/lib/containerd /var/lib/kubelet /var/lib/cni /var/lib/partage-rig"
"""The runtime's own, and the rig's, of which all nodes see everything."""
_HASHED: Final = f"/etc /opt /usr/local/lib /var/lib/partage /run/partage /run/cdi {systemd_node.CONFIG}"
_KUBELETS_OWN: Final = "kube-node-lease"
"""The namespace of heartbeats; the first comes some time after the node is ready."""
_COMES_AND_GOES: Final = ("events", "events.events.k8s.io")


@dataclass
class StoryStage:
    rig: Rig
    machines: dict[str, Machine]
    helm: Helm
    releases: Sequence[Release]
    """One, and the next."""
    logs: list[Path] = field(default_factory=list[Path])

    def follow(self, part: str, *, release: int = 0) -> None:
        """Types what the page says in that part, for all nodes at once and for that release."""
        chart = self.releases[release].chart
        for command in page.commands(part):
            typed = command.replace(_A_NODE, "--all")
            for each in _CHARTS:
                typed = typed.replace(each, str(chart))
            self._type(typed, folder=chart.parents[1])

    def _type(self, command: str, *, folder: Path) -> None:
        kubectl = self.rig.cluster.kubectl
        programs = (Path(sys.executable).parent, self.helm.program.parent, kubectl.program.parent)
        environment = {
            "HOME": str(self.helm.home),
            "PATH": ":".join(map(str, (*programs, "/usr/bin", "/bin"))),
            "KUBECONFIG": str(kubectl.kubeconfig),
        }
        done = subprocess.run(
            ("bash", "-c", command),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience_s(_TYPED_WITHIN_S),
        )
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"

    def bystander(self, node: str, name: str) -> Pod:
        """A pod that has nothing to do with cards."""
        return self.rig.cluster.pods.create(TEAM, a_pod(name, image="busybox", command=_WAITS, node=node))

    def shared_pod(self, name: str, node: str | None = None) -> Pod:
        """One that runs a kernel on half a card, says when that was, and stays."""
        command = ["/bin/sh", "-c", _RUNS]
        selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        limits = {"partage.dev/gpu-milli": "500", "partage.dev/gpu-memory": "4Gi"}
        wished = a_pod(name, image=IMAGE, command=command, scheduler="partage-scheduler", limits=limits, spec=selector)
        return self.rig.cluster.pods.create(TEAM, wished)

    def pages_pod(self) -> Pod:
        return self.rig.cluster.pods.get("default", "half")

    def kernel_at_s(self, pod: Pod) -> float:
        """When its first kernel had ended, in seconds since 1970."""
        pod.wait_running(within_s=WITHIN_S)
        pod.wait("has run a kernel", lambda _: None if pod.logs().strip() else "it has written nothing")
        said = pod.logs().strip()
        assert said.isdecimal(), said
        return int(said) / 1e9

    def limits_of(self, pod: Pod) -> ContainerTold:
        """What the node's broker keeps the pod's container within."""
        assert pod.node is not None
        (found,) = (each for each in told_by(self.machines[pod.node]).containers if each.pod.uid == pod.uid)
        return found

    def processes(self) -> dict[str, list[tuple[int, int]]]:
        """Of all containers of users, by node: each with the time of its start."""
        return {name: systemd_node.processes(each, " ".join(_WAITS)) for name, each in self.machines.items()}

    def restarts(self) -> dict[str, int]:
        """Of users' pods."""
        return {
            pod.name: sum(each["restartCount"] for each in pod.object["status"].get("containerStatuses", ()))
            for pod in self.rig.cluster.pods.list(TEAM)
        }

    def files(self) -> dict[str, list[str]]:
        """All that an installation may touch on each node: kinds, modes, owners, links and contents; and its units."""
        skipped = " ".join(f"-path {each} -prune -o" for each in _OTHERS.split())
        script = f"""
            find {_LOOKED_AT} {skipped} -printf '%y %m %U:%G %p %l\\n'
            find {_HASHED} -type f -exec sha256sum {{}} +
            systemctl list-unit-files --no-legend
            systemctl list-units --all --plain --no-legend --type=service,socket,timer | cut -d ' ' -f 1
        """
        return {
            name: sorted(machine.run("sh", "-c", f"({script}) 2>/dev/null; true").splitlines())
            for name, machine in self.machines.items()
        }

    def objects(self) -> list[str]:
        """All that the API server can list and what it says; of nodes what does not change with each heartbeat."""
        kubectl = self.rig.cluster.kubectl
        listed = kubectl.run("api-resources", "--verbs=list", "-o", "name").split()
        kinds = ",".join(kind for kind in listed if kind not in _COMES_AND_GOES)
        found = json.loads(kubectl.run("get", kinds, "--all-namespaces", "-o", "json"))["items"]
        others = (each for each in found if each["metadata"].get("namespace") != _KUBELETS_OWN)
        return sorted({*contents.lines(others), *(s for n in self.machines for s in self._node(n))})

    def told(self) -> str:
        """What the cluster and the nodes' services say, for who must find out why something failed."""
        kubectl = self.rig.cluster.kubectl
        pods = kubectl.tried("get", "pods", "-A", "-o", "wide").out
        events = kubectl.tried("get", "events", "-A", "--sort-by=.lastTimestamp").out[-8000:]
        logs = [
            f"--- {name}\n{kubectl.tried('logs', '-n', OUR_NAMESPACE, name, '--tail=40').out}"
            for name in kubectl.tried("get", "pods", "-n", OUR_NAMESPACE, "-o", "name").out.split()
        ]
        services = [f"--- {log}\n{log.read_text(errors='replace')[-6000:]}" for log in self.logs]
        return "\n".join((pods, events, *logs, *services))

    def _node(self, name: str) -> list[str]:
        node: Any = self.rig.cluster.nodes.get(name)
        metadata, status = node["metadata"], node["status"]
        return [
            *(f"node {name} label {k}={v}" for k, v in metadata["labels"].items()),
            *(f"node {name} annotation {k}={v}" for k, v in metadata.get("annotations", {}).items()),
            *(f"node {name} taint {each['key']}" for each in node["spec"].get("taints", ())),
            *(f"node {name} capacity {key}" for key in status["capacity"]),
            *(f"node {name} condition {each['type']}" for each in status["conditions"]),
        ]


@contextmanager
def story_stage(
    folder: Path, *, nodes: Sequence[str], before: str, say: Callable[[str], None], keep_logs: Path
) -> Generator[StoryStage]:
    """Nodes that are ready, the release of the commit `before` and after it that of this checkout."""
    with running(RigSettings(nodes={}, control=ControlSettings()), say=say, keep_logs=keep_logs) as rig:
        checkouts = (clone(before, folder / "before"), CHECKOUT)
        made = [release(rig, each, folder / f"release-{at}") for at, each in enumerate(checkouts)]
        rig.registry.push(_image(), IMAGE)
        rig.registry.push(_image().starting("/bin/sh", "-c", _RUNS), _PAGES_IMAGE)
        remove_delivered(rig.cluster.kubectl)
        logs = [rig.logs / f"{name}-services.log" for name in nodes]
        machines = {name: systemd_node.made(rig, name, at, logs[at - 1]) for at, name in enumerate(nodes, 1)}
        (folder / "helm").mkdir(parents=True)
        helm = helm_in(folder / "helm", rig.cluster.kubectl.kubeconfig)
        stage = StoryStage(rig, machines, helm, made, logs)
        try:
            there: list[Machine] = []
            for name, machine in machines.items():
                systemd_node.boot(rig, machine, there)
                there.append(machine)
                _furnish(rig, name, machine)
            yield stage
        except BaseException as error:
            error.add_note(stage.told())
            raise
        finally:
            for machine in machines.values():
                machine.stop()


def _image() -> images.Image:
    program = compiled(_PROGRAM, flags=("-std=gnu11", "-ldl"))
    return images.preloadable().with_files({_FIRST: program})


def _furnish(rig: Rig, name: str, machine: Machine) -> None:
    """Cards with their driver, a way to the API server's service, no Python; then kubelet."""
    systemd_node.furnish(rig, machine)
    install_driver(machine, ("h100", "h100"), name=name)
    machine.write(f"{systemd_node.UNITS}/simgpud.service", _DRIVER_UNIT)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "simgpud")
    generate_cdi(machine)
    give_address(machine, str(SERVICES[1]), f"{rig.addresses.host}:{APISERVER_PORT}")
    machine.run("sh", "-c", "for each in /usr/bin/python3*; do mount --bind /dev/null $each; done")
    systemd_node.serve(rig, machine)
