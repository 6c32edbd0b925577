"""Random clusters that an API server accepts: nodes, volumes, bound pods, and pending pods.

They have few names, labels and topology domains, so that the facts that filters compare often coincide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rig.client.manifests import NO_IMAGE
from support.objects import REQUIRED, ZONE, node_body
from unit.scheduler.clusters_made import APPS, OLD_ZONE, TIERS, ZONES, Chance

Json = dict[str, Any]
SPACES: Final = {"space-a": {"team": "1"}, "space-b": {"team": "2"}, "space-c": {}}
"""Namespaces with their labels, the same for every cluster."""
HEAVY: Final = "heavy"
"""A runtime class with pod overhead."""
OVERHEAD: Final = {"cpu": "300m", "memory": "64Mi"}
DRIVER: Final = "disks.example.org"
_VOLUMES: Final = 6


@dataclass(frozen=True)
class Made:
    """One cluster as manifests; each pod's metadata has its namespace."""

    nodes: list[Json]
    csi_nodes: list[Json]
    volumes: list[Json]
    claims: list[Json]
    present: list[Json]
    going: list[str]
    waiting: list[Json]


def a_cluster(seed: int, *, nodes: int, present: int, waiting: int) -> Made:
    """A random cluster; names of pods, claims and volumes are unique for each seed."""
    maker = _Maker(seed)
    names = [f"n{number}" for number in range(nodes)]
    pods = [maker.pod_on(names, f"on-{seed}-{number}") for number in range(present)]
    return Made(
        nodes=[maker.node_manifest(name) for name in names],
        csi_nodes=[maker.csi_node(name) for name in names if maker.chance.maybe(0.4)],
        volumes=[maker.volume(number) for number in range(_VOLUMES)],
        claims=[maker.claim(number) for number in range(_VOLUMES)],
        present=pods,
        going=[pod["metadata"]["name"] for pod in pods if maker.chance.maybe(0.15)],
        waiting=[maker.pod_manifest(f"p-{seed}-{number}") for number in range(waiting)],
    )


class _Maker:
    """Takes from `Chance` what an API server accepts, and replaces the rest."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(seed)
        self._seed = seed

    # nodes and storage

    def node_manifest(self, name: str) -> Json:
        chance = self.chance
        labels = chance.among(rack=("r1", "r2"), cores=("4", "16", "many"), **{ZONE: ZONES, OLD_ZONE: ZONES})
        if chance.maybe(0.8):
            labels["zone"] = chance.one(ZONES)
        amounts: Json = {
            "cpu": chance.one(("3", "6", "16")),
            "memory": chance.one(("6Gi", "32Gi")),
            "pods": chance.one(("3", "110", "110", "110")),
            "ephemeral-storage": "20Gi",
            "hugepages-2Mi": chance.one(("4Mi", "64Mi")),
            **chance.among(**{"example.org/thing": ("1", "3")}),
        }
        taints = {(taint["key"], taint["effect"]): taint for taint in (chance.taint() for _ in range(2))}
        spec = {
            "taints": list(taints.values())[: chance.one((0, 0, 0, 1, 2))],
            "unschedulable": chance.maybe(0.1),
        }
        return node_body(name, labels=labels, spec=spec, **amounts)

    def csi_node(self, name: str) -> Json:
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": self.chance.one((1, 1, 2))}}
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }

    def volume(self, number: int) -> Json:
        chance, name = self.chance, self._claim(number)
        labels = chance.among(**{ZONE: ("z1", "z1__z2"), OLD_ZONE: ("z1", "z2")}) if chance.maybe(0.3) else {}
        spec: Json = {
            "capacity": {"storage": "1Gi"},
            "accessModes": [self._mode(number)],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"namespace": self._space(number), "name": name},
            "csi": {"driver": DRIVER, "volumeHandle": f"h{number // 2}"},
        }
        if chance.maybe(0.4):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self.node_term()]}}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }

    def claim(self, number: int) -> Json:
        done = {"pv.kubernetes.io/bind-completed": "yes"} if self.chance.maybe(0.9) else {}
        name = self._claim(number)
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": self._space(number), "annotations": done},
            "spec": {
                "accessModes": [self._mode(number)],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": name,
            },
        }

    # pods

    def pod_on(self, names: list[str], name: str) -> Json:
        pod = self.pod_manifest(name)
        pod["spec"]["nodeName"] = self.chance.one(names)
        return pod

    def pod_manifest(self, name: str) -> Json:
        """A pod with random constraints, each rare enough that many pods still fit somewhere."""
        chance, space = self.chance, self.chance.one(list(SPACES))
        wanted = [self.container("main")]
        spec: Json = {
            "containers": wanted,
            "tolerations": [self.toleration() for _ in range(chance.one((0, 1, 2)))],
            "terminationGracePeriodSeconds": 600,
        }
        if chance.maybe(0.15):
            spec["nodeSelector"] = chance.among(zone=ZONES, rack=("r1", "r2"))
        if chance.maybe(0.5):
            spec["affinity"] = self.affinity()
        if chance.maybe(0.35):
            spec["topologySpreadConstraints"] = self.constraints()
        if chance.maybe(0.2):
            spec["initContainers"] = [self.init_container(f"i{number}") for number in range(chance.one((1, 2)))]
        if chance.maybe(0.1):
            spec["runtimeClassName"] = HEAVY
        if chance.maybe(0.25):
            spec["volumes"] = self.volumes_in(space)
        if chance.maybe(0.1):
            spec["resources"] = {"requests": {"cpu": "5"}}  # at least the sum of all containers' requests
        metadata = {"name": name, "namespace": space, "labels": chance.labels()}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def container(self, name: str) -> Json:
        chance = self.chance
        requests = chance.among(cpu=("250m", "1", "1500m"), memory=("512Mi", "2Gi"))
        if chance.maybe(0.1):
            requests |= {"ephemeral-storage": chance.one(("1Gi", "12Gi"))}
        equal: Json = {"example.org/thing": "1"} if chance.maybe(0.08) else {}
        if chance.maybe(0.12):
            requests, equal = {"cpu": "250m", **requests}, {**equal, "hugepages-2Mi": chance.one(("2Mi", "32Mi"))}
        return {
            "name": name,
            "image": NO_IMAGE,
            "resources": {"requests": {**requests, **equal}, "limits": equal},
            "ports": self.ports(),
        }

    def init_container(self, name: str) -> Json:
        sidecar = {"restartPolicy": "Always"} if self.chance.maybe() else {}
        return {**self.container(name), **sidecar}

    def ports(self) -> list[Json]:
        if not self.chance.maybe(0.2):
            return []
        chosen = self.chance.among(hostIP=("10.0.0.1", "10.0.0.2", "0.0.0.0"), protocol=("TCP", "UDP"))  # noqa: S104
        port = self.chance.one((80, 81))
        return [{"containerPort": port, "hostPort": port, **chosen}]

    def toleration(self) -> Json:
        found = self.chance.toleration()
        if not found.get("key"):
            found["operator"] = "Exists"
        if found.get("operator") == "Exists":
            found.pop("value", None)
        return found

    def node_term(self) -> Json:
        return self.chance.node_term() or {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}

    def affinity(self) -> Json:
        chance, found = self.chance, dict[str, Any]()
        if chance.maybe(0.4):
            terms = [self.node_term() for _ in range(chance.one((1, 1, 2)))]
            found["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
        if chance.maybe(0.4):
            found["podAffinity"] = {REQUIRED: [self.term()]}
        if chance.maybe(0.4):
            found["podAntiAffinity"] = {REQUIRED: [self.term() for _ in range(chance.one((1, 1, 2)))]}
        return found

    def term(self) -> Json:
        found = self.chance.term()
        if "labelSelector" in found:
            found["labelSelector"] = self.selector()
        for keys in ("matchLabelKeys", "mismatchLabelKeys"):
            if _names(found.get("labelSelector")) & set(found.get(keys, ())):
                del found[keys]  # the API server allows a key in one place only
        return found

    def constraints(self) -> list[Json]:
        found = {}
        for constraint in (self.chance.constraint() for _ in range(self.chance.one((1, 1, 2)))):
            if "labelSelector" in constraint:
                constraint["labelSelector"] = self.selector()
            if _names(constraint.get("labelSelector")) & set(constraint.get("matchLabelKeys", ())):
                del constraint["matchLabelKeys"]
            if "labelSelector" not in constraint:
                constraint.pop("matchLabelKeys", None)
            found[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
        return list(found.values())

    def selector(self) -> Json:
        found = self.chance.selector()
        return found or {"matchLabels": {"app": self.chance.one(APPS), "tier": self.chance.one(TIERS)}}

    def volumes_in(self, space: str) -> list[Json]:
        numbers = {number for number in range(_VOLUMES) if self._space(number) == space and self.chance.maybe()}
        return [
            {"name": f"v{number}", "persistentVolumeClaim": {"claimName": self._claim(number)}} for number in numbers
        ]

    def _claim(self, number: int) -> str:
        return f"c-{self._seed}-{number}"

    @staticmethod
    def _space(number: int) -> str:
        return list(SPACES)[number % len(SPACES)]

    @staticmethod
    def _mode(number: int) -> str:
        return "ReadWriteOncePod" if number == _VOLUMES - 1 else "ReadWriteOnce"


def _names(selector: Json | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.get("matchLabels", {}), *(each["key"] for each in selector.get("matchExpressions", ()))}
