"""A cluster as a managed one: kube-scheduler allocates, kubelet uses containerd directly, the node has our driver.

    with claimed(say=print) as stage:
        pod = stage.pod("train", share=300, memory="8Gi").wait_running()

The node has simulated cards of the pool dra, a broker and the driver; no other daemon of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from partage_base.claim_records import ClaimRecords
from partage_isolation.wire.messages import ContainerReport
from partage_plugins.api.claims import DRIVER, ClaimRecord, ClaimUid
from partage_plugins.api.places import CDI_FOLDER
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Json,
)
from rig.client.wait import until
from rig.identity.people import TEAM
from rig.machine.components import Component
from rig.nodes.node import Daemon, NodeSettings
from rig.rig import Rig, RigSettings, running
from support.bytecode import BYTECODE
from support.claim_objects import API, device_class, devices, request
from support.cluster_stage import ClusterStage
from support.crishim_stage import INVENTORY, NODE
from support.isolation_stage import ENV, IMAGE, SERVING, equip, image, inventory, told_by
from support.metrics import everywhere, figures, why_not_ready

ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
PORT: Final = 9480


def part_class(of: int) -> Json:
    """The class of fixed parts, which pods without claims can use too; as the chart creates it."""
    attributes, kind = f'device.attributes["{DRIVER}"]', f"1of{of}"
    chosen = f'"part" in {attributes} && {attributes}.part == "{kind}"'
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}" && {chosen}'}}]
    spec = {"extendedResourceName": f"{DRIVER}/{kind}", "selectors": selectors}
    return {"metadata": {"name": f"{kind}.{DRIVER}"}, "spec": spec}


@dataclass
class DraStage(ClusterStage):
    driver: Component
    broker: Component
    scheduler: str = "default-scheduler"
    """The scheduler of its pods."""

    @property
    def root(self) -> Path:
        return self.machine.path("/")

    # ---- Objects of users --------------------------------------------------------------------------------------------

    def claim(self, name: str, spec: Json) -> str:
        """Create a named claim, which several pods can use; returns its uid."""
        body = {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}
        return str(self.rig.cluster.api.create(RESOURCE_CLAIMS.at(TEAM), body)["metadata"]["uid"])

    @contextmanager
    def administrated(self) -> Generator[None]:
        """Allow claims of the namespace to have `adminAccess`."""
        path = NAMESPACES.at(name=TEAM)
        self.rig.cluster.api.patch(path, {"metadata": {"labels": {ADMIN_ACCESS: "true"}}})
        try:
            yield
        finally:
            self.rig.cluster.api.patch(path, {"metadata": {"labels": {ADMIN_ACCESS: None}}})

    def allocate(self, name: str, allocation: Json) -> Json:
        """Write an allocation with the right to `resourceclaims/binding`; returns the claim."""
        api, path = self.rig.cluster.api, RESOURCE_CLAIMS.at(TEAM, name)
        claim = api.get(path)
        return api.replace(f"{path}/status", {**claim, "status": {"allocation": allocation}})

    def pod(self, name: str, asked: Json | None = None, *, claim: str | None = None, **said: Any) -> Pod:
        """A pod with its own claim from a template, or with the named claim."""
        if claim is None:
            source = {"resourceClaimTemplateName": self._template(name, asked or devices(request()))}
        else:
            source = {"resourceClaimName": claim}
        return self._pod(name, {"gpu": source}, said)

    def pod_with_two(self, name: str) -> Pod:
        """A pod with two claims of its own in one container."""
        names = {each: self._template(f"{name}-{each}", devices(request())) for each in ("one", "other")}
        return self._pod(name, {each: {"resourceClaimTemplateName": name} for each, name in names.items()}, {})

    def _template(self, name: str, spec: Json) -> str:
        template = {"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": spec}}
        self.rig.cluster.api.create(RESOURCE_CLAIM_TEMPLATES.at(TEAM), {"apiVersion": API, **template})
        return name

    def _pod(self, name: str, claims: Mapping[str, Json], said: Mapping[str, Any]) -> Pod:
        fields: dict[str, Any] = {"image": IMAGE, "command": SERVING, "scheduler": self.scheduler, **said}
        made = a_pod(name, **fields)
        made["spec"]["resourceClaims"] = [{"name": each, **source} for each, source in claims.items()]
        made["spec"]["containers"][0]["resources"]["claims"] = [{"name": each} for each in claims]
        return self.rig.cluster.pods.create(TEAM, made)

    def come_and_go(self, claim: str, *, times: int = 6) -> None:
        """Create and at once delete pods with the claim and a node name: kubelet 1.36 then releases a claim in use."""
        for number in range(times):
            self.pod(f"{claim}-passing-{number}", claim=claim, node=self.node.name).delete_and_wait(grace_s=0)

    # ---- Resulting state ---------------------------------------------------------------------------------------------

    def claim_of(self, pod: Pod) -> Json:
        (status,) = pod.refresh()["status"]["resourceClaimStatuses"]
        return self.rig.cluster.api.get(RESOURCE_CLAIMS.at(TEAM, status["resourceClaimName"]))

    def told(self, uid: str) -> ContainerReport | None:
        return next((each for each in told_by(self.machine).containers if each.pod.uid == uid), None)

    def record(self, uid: str) -> ClaimRecord | None:
        return ClaimRecords(self.root).of(ClaimUid(uid))

    @property
    def cdi(self) -> Path:
        """The machine's CDI folder; its /var/run is a link that would lead to the host's from here."""
        return self.root / CDI_FOLDER.removeprefix("var/")

    def specs(self) -> list[str]:
        return sorted(path.name for path in self.cdi.glob("partage.dev-share_*"))

    def slices(self) -> list[Json]:
        """Our driver's slices."""
        found = self.rig.cluster.api.get(RESOURCE_SLICES.at())["items"]
        return [each for each in found if each["spec"]["driver"] == DRIVER]

    def devices(self) -> list[Json]:
        """The published devices."""
        return [device for each in self.slices() for device in each["spec"].get("devices", ())]

    def wait_published(self) -> None:
        until("the node's devices are published", lambda: None if self.slices() else "there is no slice")

    def prepares(self) -> float:
        """Number of prepare calls by kubelet since the driver's start."""
        told = figures(self.machine, PORT)
        return sum(count for series, count in told.items() if series.startswith("partage_dra_prepares_total"))

    def wait_nothing_left(self, uid: str) -> None:
        def why_not() -> str | None:
            left = {
                "record": self.record(uid),
                "rows": self.told(uid),
                "files": [name for name in self.specs() if uid in name],
            }
            return None if not any(left.values()) else str(left)

        until(f"nothing is left of claim {uid}", why_not)

    # ---- The driver --------------------------------------------------------------------------------------------------

    def replace_driver(self, *flags: str) -> None:
        """Kill it, and start another one with these flags."""
        self.driver.kill()
        self.driver = self.node.run(dra_driver(self.rig, *flags))

    def clear(self) -> None:
        super().clear()
        for kind in (RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS):
            self.rig.cluster.api.delete(kind.at(TEAM))


def dra_driver(rig: Rig, *flags: str, user: Cluster | None = None) -> Daemon:
    """The driver with kubelet's identity, which may write the slices of its node and read the claims of its pods."""
    access = (user or rig.cluster.as_node(NODE)).kubectl.kubeconfig
    argv = (sys.executable, "-P", "-m", "partage_dra", "--node-name", NODE, "--kubeconfig", str(access))
    more = ("--log-format", "text", "--metrics-address", everywhere(PORT), "--look-every-s", "0.2", *flags)
    return Daemon("dra", (*argv, *more), partial(why_not_ready, port=PORT), {**BYTECODE, **ENV})


@contextmanager
def claimed(
    *,
    say: Callable[[str], None],
    keep_logs: Path | None = None,
    reads_all: bool = False,
    releases: tuple[str, ...] = (),
) -> Generator[DraStage]:
    """The stage; `reads_all` also lets the driver read claims that no pod of its node has."""
    settings = RigSettings(nodes={NODE: NodeSettings(files={INVENTORY: inventory("dra")})}, releases=releases)
    with running(settings, say=say, keep_logs=keep_logs) as rig:
        rig.registry.push(image(), IMAGE)
        lender = equip(rig.nodes[NODE])
        rig.cluster.api.create(DEVICE_CLASSES.at(), device_class())
        driving = dra_driver(rig, user=rig.cluster if reads_all else None)
        yield DraStage(rig, rig.nodes[NODE].run(driving), lender)
