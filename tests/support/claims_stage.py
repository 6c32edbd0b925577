"""A cluster in which our scheduler allocates claims: the node of `dra_stage`, whose driver publishes nothing.

    with allocating(say=print) as stage:
        stage.claims.pod("train").wait_running()

What lets only the scheduler write allocations is in force, and so are the rights that are delivered for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import micro_time
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.vocabulary import GPU, Ready
from partage_plugins.vocabulary.keys import INVENTORY
from rig.client.cluster import Cluster
from rig.client.pods import Pod
from rig.client.resources import LEASES, RESOURCE_CLAIMS, Json, path_of
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.identity.permissions import delivered
from support.crishim_stage import NODE
from support.dra_stage import DraStage, claimed, devices, request
from support.isolation_stage import inventory
from support.scheduler_process import SchedulerProcess

FILES: Final = ("claims/admission.yaml", "claims/rbac.yaml")
FLAGS: Final = ("--claims", "--no-elect", "--silent-after-s", "3600", "--log-format", "text")
POLICY: Final = "partage-claims"
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

    def wait_told(self, pod: Pod, words: str) -> None:
        """Until the condition of a pod that waits says so."""

        def why_not(seen: Json) -> str | None:
            said = [each.get("message", "") for each in seen.get("status", {}).get("conditions", [])]
            return None if any(words in each for each in said) else str(said)

        pod.wait(f"is told {words!r}", why_not)


def forged(card: str) -> Json:
    """An allocation of all of a card, as the API server takes it."""
    consumed = {"share": "1000", "memory": "1Gi"}
    result = {
        "request": "gpu",
        "driver": "gpu.partage.dev",
        "pool": NODE,
        "device": card.lower(),
        "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
        "consumedCapacity": consumed,
    }
    return {"devices": {"results": [result]}}


@contextmanager
def allocating(*, root: Path, say: Callable[[str], None], keep_logs: Path | None = None) -> Generator[ClaimsStage]:
    with claimed(say=say, keep_logs=keep_logs, publishes=False) as claims:
        cluster, control = claims.rig.cluster, claims.rig.control
        for manifest in (each for file in FILES for each in delivered(file)):
            cluster.api.create(path_of(manifest).rpartition("/")[0], manifest)
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


def _join(cluster: Cluster) -> None:
    """What the node's advertiser would say of it."""
    known = decode_inventory(inventory("dra"), (GPU,))
    text = encode_inventory(replace(known, ready=Ready(broker=True))).decode()
    cluster.nodes.annotate(NODE, {INVENTORY: text})
    spec = {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": micro_time(datetime.now(UTC))}
    cluster.api.create(LEASES.at(OUR_NAMESPACE), {"metadata": {"name": NODE}, "spec": spec})


def _why_not_in_force(claims: DraStage) -> str | None:
    """The API server takes a moment to notice a policy."""
    claims.claim("premature", devices(request()))
    try:
        claims.allocate("premature", forged("gpu-0"))
    except Refused as refused:
        return None if _FORGED in refused.message else str(refused)
    finally:
        claims.clear()
    return "an allocation that was forged is taken"
