"""Creates a cluster in a real API server, and compares kube-scheduler's and our result for every pending pod."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_base.kube import Access, ApiServer
from partage_scheduler.core import Core, new_core, plugins
from partage_scheduler.dry_run import look
from partage_scheduler.explanation import explain
from partage_scheduler.objects import ApiPod
from partage_scheduler.settings import SchedulerSettings
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.pod_status import condition
from rig.client.resources import NAMESPACES, NODES, PODS, Resource
from rig.client.wait import until
from rig.control.plane import ControlPlane
from rig.control.settings import ControlSettings
from support.feasible.made import HEAVY, OVERHEAD, SPACES, Made, a_cluster
from support.feasible.recording import Recorder

Json = dict[str, Any]
_VOLUMES: Final = Resource("v1", "persistentvolumes", namespaced=False)
_CLAIMS: Final = Resource("v1", "persistentvolumeclaims")
_CSI_NODES: Final = Resource("storage.k8s.io/v1", "csinodes", namespaced=False)
_RUNTIME_CLASSES: Final = Resource("node.k8s.io/v1", "runtimeclasses", namespaced=False)
_NOW: Final = {"gracePeriodSeconds": 0}
_SPACE: Final = next(iter(SPACES))
NODES_EACH, PRESENT_EACH, WAITING_EACH = 8, 24, 50


def settings_for(recorder: Recorder) -> ControlSettings:
    """A control plane whose kube-scheduler calls the recorder; without controllers, so nothing changes by itself."""
    return ControlSettings(
        controller_manager=False,
        apiserver_flags={"disable-admission-plugins": "ServiceAccount,TaintNodesByCondition"},
        kube_scheduler_configuration=recorder.configuration,
        kube_scheduler_flags={"kube-api-qps": "1000", "kube-api-burst": "1000"},
    )


@dataclass(frozen=True)
class Difference:
    """A pod for which the results differ."""

    pod: Json
    theirs: frozenset[str]
    ours: frozenset[str]
    message: str

    def __str__(self) -> str:
        name, spec = self.pod["metadata"]["name"], self.pod["spec"]
        missing, more = sorted(self.theirs - self.ours), sorted(self.ours - self.theirs)
        return f"{name}: theirs alone {missing}, ours alone {more}\n  we say: {self.message}\n  {spec}"


@dataclass
class Outcome:
    pairs: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])
    sizes: Counter[int] = field(default_factory=Counter[int])
    reasons: Counter[str] = field(default_factory=Counter[str])
    """Number of pairs of pod and node for each of our reasons."""

    @property
    def telling(self) -> int:
        """Pods that fit on some nodes but not on all."""
        return self.pairs - self.sizes[0] - self.sizes[NODES_EACH]


class Comparison:
    """A control plane with kube-scheduler and its recorder, and the results so far."""

    def __init__(self, control: ControlPlane, recorder: Recorder, root: Path) -> None:
        self._cluster = Cluster(control)
        self._api, self._recorder = self._cluster.api, recorder
        self._kubeconfig = self._cluster.kubectl.kubeconfig
        self._settings, self._registry = SchedulerSettings(root=root), plugins()
        self.outcome = Outcome()

    def furnish(self) -> None:
        for name, labels in SPACES.items():
            self._api.create(NAMESPACES.at(), {"metadata": {"name": name, "labels": labels}})
        runtime = {"metadata": {"name": HEAVY}, "handler": HEAVY, "overhead": {"podFixed": OVERHEAD}}
        self._api.create(_RUNTIME_CLASSES.at(), {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", **runtime})

    def close(self) -> None:
        self._cluster.close()

    def compare(self, seed: int, *, waiting: int = WAITING_EACH) -> None:
        made = a_cluster(seed, nodes=NODES_EACH, present=PRESENT_EACH, waiting=waiting)
        self._build(made)
        for pod in made.waiting:
            self._created(pod)
        until("kube-scheduler has decided on all pods", lambda: self._undecided(len(made.waiting)))
        core = asyncio.run(self._ours())
        for pod in self._waiting():
            self._put_against(core, pod)
        self._clear()

    def _build(self, made: Made) -> None:
        """Create pods last: kube-scheduler receives pods in order of creation, but nodes and pods in any order."""
        for resource, manifests in ((_VOLUMES, made.volumes), (_CSI_NODES, made.csi_nodes), (NODES, made.nodes)):
            for manifest in manifests:
                self._api.create(resource.at(), manifest)
        for claim in made.claims:
            self._api.create(_CLAIMS.at(claim["metadata"]["namespace"]), claim)
        self._require_known(frozenset(node["metadata"]["name"] for node in made.nodes))
        for pod in made.present:
            self._created(pod)
            if pod["metadata"]["name"] in made.going:
                self._api.delete(PODS.at(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _require_known(self, nodes: frozenset[str]) -> None:
        spec = {"tolerations": [{"operator": "Exists"}]}

        def why_not() -> str | None:
            pod = self._api.create(PODS.at(_SPACE), a_pod("asks", spec=spec))
            until("kube-scheduler has decided", lambda: self._undecided(1))
            self._api.delete(PODS.at(_SPACE, "asks"), _NOW)
            left = self._recorder.left(pod["metadata"]["uid"])
            return None if left == nodes else f"it knows {sorted(left)}"

        until("kube-scheduler knows all nodes", why_not)

    def _created(self, manifest: Json) -> Json:
        return self._api.create(PODS.at(manifest["metadata"]["namespace"]), manifest)

    def _waiting(self) -> list[Json]:
        return self._api.list(PODS.at(), {"fieldSelector": "spec.nodeName="})

    def _undecided(self, count: int) -> str | None:
        """How many pods are undecided; a pod that fits nowhere has the condition PodScheduled."""
        decided = sum(bool(condition(pod, "PodScheduled")) for pod in self._waiting())
        return None if decided == count else f"{decided} of {count} pods"

    async def _ours(self) -> Core:
        core = new_core(self._settings, self._registry)
        access = await asyncio.to_thread(Access.find, self._kubeconfig)
        async with ApiServer(access, user_agent="partage-test") as server:
            await look(server, core, namespace=self._settings.namespace)
        return core

    def _put_against(self, core: Core, pod: Json) -> None:
        explained = explain(core.cycle, msgspec.convert(pod, ApiPod), time.monotonic())
        possible = frozenset(str(node.node) for node in explained.nodes if not node.reasons)
        ours = possible if explained.goes_to is not None else frozenset[str]()
        theirs = self._recorder.left(pod["metadata"]["uid"])
        self.outcome.pairs += 1
        self.outcome.sizes[len(theirs)] += 1
        self.outcome.reasons.update(reason for node in explained.nodes for reason in node.reasons)
        if ours != theirs:
            self.outcome.differences.append(Difference(pod, theirs, ours, explained.message))

    def _clear(self) -> None:
        for space in SPACES:
            self._api.delete(PODS.at(space), _NOW)
        for resource in (NODES, _CSI_NODES):
            self._api.delete(resource.at())
