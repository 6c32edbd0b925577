"""A cluster in which our scheduler allocates claims: that of `dra_stage`, while its driver publishes nothing.

    with allocating(claims, root=root, say=print) as stage:
        stage.claims.pod("train").wait_running()

The admission policy that lets only the scheduler write allocations is in force, with the RBAC that we deliver.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.keyring import KeyFolders, add_pair
from partage_plugins.api import GPU, Ready
from partage_plugins.api.keys import INVENTORY
from partage_plugins.codecs import decode_inventory
from rig.client.cluster import Cluster
from rig.client.policies import why_not_denied
from rig.client.resources import LEASES, RESOURCE_CLAIMS, RESOURCE_SLICES, Json, path_of
from rig.client.wait import until
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.identity.permissions import delivered
from support.claim_objects import devices, request, result
from support.crishim_stage import NODE
from support.dra_stage import DraStage
from support.isolation_stage import inventory
from support.objects import lease_body, written
from support.scheduler_process import SchedulerProcess

FILES: Final = ("claims/admission.yaml", "claims/rbac.yaml")
FLAGS: Final = ("--claims", "--no-elect", "--silent-after-s", "3600", "--log-format", "text")
_FORGED: Final = "devices of gpu.partage.dev are allocated by partage-scheduler alone"


@dataclass
class ClaimsStage:
    claims: DraStage
    scheduler: SchedulerProcess

    @property
    def cluster(self) -> Cluster:
        return self.claims.rig.cluster

    def start_scheduler(self) -> None:
        self.scheduler.start(*FLAGS)

    def claim(self, name: str) -> Json:
        return self.cluster.api.get(RESOURCE_CLAIMS.at(TEAM, name))


def forged(card: str) -> Json:
    """A forged allocation of a whole card that the API server accepts."""
    return {"devices": {"results": [result(card.lower(), "1000", "1Gi", pool=NODE)]}}


@contextmanager
def allocating(claims: DraStage, *, root: Path, say: Callable[[str], None]) -> Generator[ClaimsStage]:
    """Let our scheduler allocate the claims of that stage inside the context."""
    cluster, control = claims.rig.cluster, claims.rig.control
    manifests = [each for file in FILES for each in delivered(file)]
    for manifest in manifests:
        cluster.api.create(path_of(manifest).rpartition("/")[0], manifest)
    publish(claims, is_on=False)
    _join(cluster)
    add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate())
    access = control.identities.kubeconfig(cluster.as_account(SCHEDULER).identity, control.server)
    claims.scheduler = "partage-scheduler"
    stage = ClaimsStage(claims, SchedulerProcess(access, root))
    until("only the scheduler allocates", lambda: _why_not_in_force(claims))
    stage.start_scheduler()
    try:
        yield stage
    finally:
        stage.scheduler.kill()
        say(stage.scheduler.said[-6000:])
        claims.scheduler = "default-scheduler"
        for manifest in reversed(manifests):
            cluster.api.delete(path_of(manifest))
        until("everybody allocates", lambda: None if _why_not_in_force(claims) else "it is forbidden")
        cluster.nodes.annotate(NODE, {INVENTORY: None})
        cluster.api.delete(LEASES.at(OUR_NAMESPACE, NODE))
        publish(claims, is_on=True)


def publish(claims: DraStage, *, is_on: bool) -> None:
    """Restart the driver, with publishing of the node's devices on or off."""
    claims.kill_driver()
    for each in claims.slices():
        claims.rig.cluster.api.delete(RESOURCE_SLICES.at(name=each["metadata"]["name"]))
    claims.start_driver(*(() if is_on else ("--no-publish",)))
    if is_on:
        claims.wait_published()


def _join(cluster: Cluster) -> None:
    """Write what the node's advertiser would write."""
    known = decode_inventory(inventory("dra"), (GPU,))
    cluster.nodes.annotate(NODE, {INVENTORY: written(replace(known, ready=Ready(broker=True)))})
    cluster.api.create(LEASES.at(OUR_NAMESPACE), lease_body(NODE))


def _why_not_in_force(claims: DraStage) -> str | None:
    claims.claim("premature", devices(request()))
    try:
        return why_not_denied((_FORGED, lambda: claims.allocate("premature", forged("gpu-0"))))
    finally:
        claims.clear()
