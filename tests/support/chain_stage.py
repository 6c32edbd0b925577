"""The whole system: two nodes with simulated cards and an FPGA board each, all of our daemons, and users.

    with chained(say=print) as chain:
        train = chain.pod("train", limits={GPU_MILLI: "500"}).wait_running()
        assert ask(train, "take 100") == "took 100"

The scheduler runs as in a control plane, with its account in the cluster; on each node are the advertiser, crishim and
a broker. The template FPGA plugin is installed on both sides, as a package would install it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, load_public_keys
from partage_dialects.settings import NVIDIA_GPU
from partage_gpu.allocator.plan import NAMESPACES as EXCLUSION_NAMESPACES
from partage_isolation.wire.messages import ContainerReport
from partage_plugins.api import GPU, Allocation, ContainerName, GpuGrant
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.codecs import decode_allocation, verify
from rig.client.cluster import Cluster
from rig.client.pods import Pod
from rig.client.resources import LEASES
from rig.client.wait import until
from rig.control.settings import ControlSettings
from rig.identity.people import OUR_NAMESPACE, SCHEDULER
from rig.nodes.node import Node, NodeSettings
from rig.patience import patience_s
from rig.rig import Rig, RigSettings, running
from support.advertiser_stage import PORT as ADVERTISER_PORT
from support.advertiser_stage import AdvertiserStage
from support.cluster_stage import ClusterStage
from support.crishim import PORT as CRISHIM_PORT
from support.crishim_stage import PLUGINS_FOLDER, add_board, behind, crishim, distribution, plugin_files
from support.isolation_stage import BROKER_PORT, ENV, IMAGE, SERVING, equip, image, limits_of
from support.scheduler_process import SchedulerProcess, new_key

NvidiaGpu = Literal["kubelet", "whole", "hami"]
NODES: Final = ("n1", "n2")
OURS: Final = "partage-scheduler"
BOARDS: Final = "fpga.example.com/boards"
EXCLUDING: Final = "excluding"
"""The one namespace allowed to use exclusions with parts of cards; tests that need it create it."""
PLUGINS: Final = "[partage.scheduler]\nfpga = partage_fpga_template.scheduler:FpgaScheduler\n"
FOUND_WRONG: Final = 3
PORTS: Final = {"advertiser": ADVERTISER_PORT, "broker": BROKER_PORT, "crishim": CRISHIM_PORT}
"""Ports of the daemons' metrics."""
QUICK: Final = ("--lease-s", "4", "--renew-s", "3", "--retry-s", "0.5", "--back-off-s", "0.5", "--most-back-off-s", "2")


def scheduler_of(
    cluster: Cluster,
    root: Path,
    *flags: str,
    nvidia_gpu: NvidiaGpu = "kubelet",
    module: str = "partage_scheduler",
) -> SchedulerProcess:
    """The scheduler with a third-party plugin beside ours; `nvidia_gpu` says which dialect owns `nvidia.com/gpu`."""
    plugins = root / "plugins"
    for path, text in distribution(PLUGINS).items():
        (plugins / path).parent.mkdir(parents=True, exist_ok=True)
        (plugins / path).write_text(text)
    python_path = os.pathsep.join((str(plugins), os.environ.get("PYTHONPATH", "")))
    env = {"PYTHONPATH": python_path, NVIDIA_GPU: nvidia_gpu, EXCLUSION_NAMESPACES: EXCLUDING}
    kubeconfig = cluster.as_account(SCHEDULER).kubectl.kubeconfig
    return SchedulerProcess(kubeconfig, root, "--log-format", "text", *QUICK, *flags, module=module, env=env)


@dataclass
class Chain(ClusterStage):
    """The cluster, as its users and its administrator see it."""

    scheduler: SchedulerProcess
    root: Path
    advertisers: dict[str, AdvertiserStage] = field(default_factory=dict[str, AdvertiserStage])

    def pod(self, name: str, *, limits: Mapping[str, str], **said: Any) -> Pod:
        """A pod for our scheduler; its program allocates card memory on command."""
        return self.create_pod(name, limits=limits, **{"image": IMAGE, "command": SERVING, "scheduler": OURS, **said})

    def allocation(self, pod: Pod) -> Allocation:
        """The pod's allocation; raises unless it is signed."""
        pod.refresh()
        notes = pod.annotations
        verify(notes[ALLOCATION], notes[SIGNATURE], load_public_keys(KeyFolders.at_root(self.root).public).keys)
        return decode_allocation(notes[ALLOCATION], [GPU])

    def grant(self, pod: Pod, container: str = "main") -> GpuGrant:
        (grant,) = self.allocation(pod).of(GPU)[ContainerName(container)]
        return grant

    def limits_of(self, pod: Pod) -> ContainerReport:
        """The limits of the pod's container in the node's broker."""
        return limits_of(self.machine_of(pod), pod)

    def restart(self, daemon: str, node: Node) -> None:
        """Kill the scheduler, or that daemon of the node, and start it again."""
        if daemon == "scheduler":
            self.scheduler.kill()
            self.scheduler.start()
        else:
            node.newest(daemon).restart()

    @property
    def said(self) -> str:
        return self.scheduler.said[-6000:]

    def partage(self, *words: str) -> str:
        """Output of the command run by an administrator; it may exit with "found wrong"."""
        done = self._partage(*words)
        assert done.returncode in {0, FOUND_WRONG}, done.stderr
        return done.stdout

    def failing(self, *words: str) -> str:
        """The error message of a command that must fail."""
        done = self._partage(*words)
        assert done.returncode == 1, done.stdout
        return done.stderr

    def _partage(self, *words: str) -> subprocess.CompletedProcess[str]:
        own = str(self.rig.cluster.kubectl.kubeconfig)
        argv = (sys.executable, "-P", "-m", "partage_cli", "--root", str(self.root), *words, "--kubeconfig", own)
        env = self.scheduler.env
        return subprocess.run(argv, capture_output=True, text=True, timeout=patience_s(), check=False, env=env)

    @property
    def scheduler_address(self) -> str:
        """The metrics address of the running scheduler, which chose a free port."""
        found: list[str] = re.findall(r"metrics are served.*?(127\.0\.0\.1:\d+)", self.scheduler.said)
        return found[-1]

    def targets(self) -> Mapping[str, Mapping[str, str]]:
        """Metrics addresses of all daemons, with the labels that a PodMonitor would add."""
        found = {self.scheduler_address: {"node": "control"}}
        for name, node in self.rig.nodes.items():
            found |= {f"{node.machine.addresses.ip}:{port}": {"node": name} for port in PORTS.values()}
        return found


@contextmanager
def chained(  # noqa: PLR0913 - said once, and by name
    root: Path,
    *,
    say: Callable[[str], None],
    keep_logs: Path | None = None,
    control: ControlSettings | None = None,
    flags: Sequence[str] = (),
    nodes: Sequence[str] = NODES,
    nvidia_gpu: NvidiaGpu = "kubelet",
    releases: Sequence[str] = (),
    profile: str = "none",
    scheduler: str = "partage_scheduler",
) -> Generator[Chain]:
    """A cluster in which all of our daemons run, the scheduler with further flags, crishim with this profile.

    `scheduler` is the module to run as the scheduler.
    """
    key = new_key(root)
    settings = RigSettings(
        nodes={name: _node(name, key, profile) for name in nodes},
        control=control or ControlSettings(),
        releases=tuple(releases),
    )
    with running(settings, say=say, keep_logs=keep_logs) as rig:
        rig.registry.push(image(), IMAGE)
        process = scheduler_of(rig.cluster, root, *flags, nvidia_gpu=nvidia_gpu, module=scheduler)
        chain = Chain(rig, process, root)
        try:
            for name, node in rig.nodes.items():
                equip(node, ("h100", "h100"), name=name)
                add_board(node.machine)
                chain.advertisers[name] = AdvertiserStage(rig, name)
                start_advertiser(chain.advertisers[name])
            process.start()
            for advertiser in chain.advertisers.values():
                _wait_sharing(advertiser)
            _wait_leases(rig, {"partage-scheduler", *rig.nodes})
            yield chain
        finally:
            process.kill()


def _wait_leases(rig: Rig, names: AbstractSet[str]) -> None:
    """Wait until a scheduler leads and every node has a heartbeat."""

    def why_not() -> str | None:
        there = {lease["metadata"]["name"] for lease in rig.cluster.api.list(LEASES.at(OUR_NAMESPACE))}
        return f"none for {', '.join(sorted(names - there))}" if names - there else None

    until("everything of ours has its lease", why_not)


def start_advertiser(stage: AdvertiserStage, settings: Mapping[str, str] | None = None) -> None:
    """Start the advertiser with the node's plugins, and these settings on top of the defaults."""
    stage.start(env={**ENV, "PYTHONPATH": PLUGINS_FOLDER, **(settings or {})})


def _node(name: str, key: Ed25519PrivateKey, profile: str) -> NodeSettings:
    """Enforcement is on, so a grant is rejected unless its limits are enforced."""
    return behind(crishim(0, "--profile", profile, env=ENV, node=name), plugin_files(), key)


def _wait_sharing(advertiser: AdvertiserStage) -> None:
    """Wait until the cluster knows that the node's cards are allocatable."""

    def why_not() -> str | None:
        told = advertiser.told()
        if told is None:
            return "nothing is told"
        cards = [card.is_allocatable for card in advertiser.cards()]
        ready = told.ready.crishim and told.ready.broker
        return None if ready and cards and all(cards) else f"ready: {told.ready}, cards: {cards}"

    advertiser.wait("its cards may be shared", why_not)
