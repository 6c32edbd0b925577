"""A cluster before partage is installed: nodes with cards, partage's images in a registry, helm.

What is installed runs as in any cluster, in pods from its own images. The only Service with a working address is the
API server's, by a rule on each node.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_bundle import built, image
from partage_bundle.recipe import MACHINES, TREES
from partage_bundle.registry import Repository, push
from partage_bundle.tree import version_here
from rig.client.pods import Pod
from rig.client.resources import Json, Resource
from rig.client.wait import until
from rig.control.settings import APISERVER_PORT, ControlSettings
from rig.identity.people import OUR_NAMESPACE
from rig.nodes.machine import Machine
from rig.rig import Rig, RigSettings, running
from support.chart import CHART, INTO, RELEASE, Helm, helm_in
from support.simgpu_stage import install_driver, simgpud

REGISTRY: Final = "registry.example/partage"
"""Served by the rig's registry, which stands in for every registry."""
SERVICES: Final = Resource("v1", "services")
SLICES: Final = Resource("discovery.k8s.io/v1", "endpointslices")
EXTENDER: Final = "partage-extender"
EXTENDER_PORT: Final = 9410
DRIVER_ROOT: Final = "/run/nvidia/driver"


@dataclass(frozen=True)
class InstallStage:
    rig: Rig
    helm: Helm
    images: Mapping[str, str]
    """Image of each tree, by digest."""

    @property
    def values(self) -> list[str]:
        """The chart values that an operator sets for this cluster."""
        return [
            f"image.registry={REGISTRY}",
            *(f"image.{tree}={name}" for tree, name in self.images.items()),
            f"driverRoot={DRIVER_ROOT}",
        ]

    def install(self, *values: str) -> None:
        self.helm.run("install", RELEASE, CHART, *INTO, "--create-namespace", values=[*self.values, *values])

    def upgrade(self, *values: str) -> None:
        self.helm.run("upgrade", RELEASE, CHART, *INTO, values=[*self.values, *values])

    def uninstall(self) -> None:
        """Uninstall as the chart's page describes."""
        self.helm.run("uninstall", RELEASE, *INTO, "--wait")
        self.rig.cluster.kubectl.run("delete", "namespace", OUR_NAMESPACE)

    def pods(self, name: str) -> list[Pod]:
        """Pods of one of our workloads."""
        return [each for each in self.rig.cluster.pods.list(OUR_NAMESPACE) if each.name.startswith(f"{name}-")]

    def give_extender_address(self) -> None:
        """Do what kube-proxy and DNS would do for the extender; the rig has neither."""
        cluster, address = self.rig.cluster, list[str]()

        def why_not() -> str | None:
            found = cluster.api.get(SLICES.at(OUR_NAMESPACE, EXTENDER)).get("endpoints") or []
            address[:] = [each for endpoint in found for each in endpoint["addresses"]]
            return None if address else "no scheduler says that it leads"

        until("the extender has an address", why_not)
        service: str = cluster.api.get(SERVICES.at(OUR_NAMESPACE, EXTENDER))["spec"]["clusterIP"]
        for node in self.rig.nodes.values():
            give_address(node.machine, service, f"{address[0]}:{EXTENDER_PORT}", port=EXTENDER_PORT)
        alias = {"ip": service, "hostnames": [f"{EXTENDER}.{OUR_NAMESPACE}.svc"]}
        patch = json.dumps({"spec": {"template": {"spec": {"hostAliases": [alias]}}}})
        cluster.kubectl.run("-n", OUR_NAMESPACE, "patch", "deployment", "partage-kube-scheduler", "-p", patch)

    def wait_rolled_out(self, *workloads: str) -> None:
        for workload in workloads:
            wait = ("rollout", "status", workload, "--timeout=170s")
            self.rig.cluster.kubectl.run("-n", OUR_NAMESPACE, *wait, within_s=180)


@contextmanager
def installable(home: Path, *, say: Callable[[str], None]) -> Generator[InstallStage]:
    """Two nodes with two cards each, without partage."""
    with running(RigSettings(control=ControlSettings(partage=False)), say=say) as rig:
        service: Json = rig.cluster.api.get(SERVICES.at("default", "kubernetes"))
        for name, node in rig.nodes.items():
            give_address(node.machine, service["spec"]["clusterIP"], f"{rig.addresses.host}:{APISERVER_PORT}")
            install_driver(node.machine, ("h100", "h100"), name=name)
            driver = node.daemon(simgpud())
            driver.start()
            driver.wait_ready()
        images = push_images(rig, version_here(), home)
        yield InstallStage(rig, helm_in(home, rig.cluster.kubectl.kubeconfig), images)


def give_address(machine: Machine, service: str, server: str, *, port: int = 443) -> None:
    """Do what kube-proxy would do for a Service that our pods call."""
    for chain in ("OUTPUT", "PREROUTING"):
        to = ("-d", service, "-p", "tcp", "--dport", str(port), "-j", "DNAT", "--to-destination", server)
        machine.run("iptables", "-t", "nat", "-A", chain, *to)


def push_images(rig: Rig, version: str, home: Path) -> Mapping[str, str]:
    machine, pushed = MACHINES[os.uname().machine], dict[str, str]()
    for name, tree in TREES.items():
        layout = home / name
        image.write(layout, tree, version, [(machine, built(name, machine.name, version=version))])
        repository = f"{rig.registry.address}/partage/{image.name(tree)}"
        pushed[name] = f"{image.name(tree)}:{version}@{push(layout, Repository.of(repository, is_plain=True))}"
    return pushed
