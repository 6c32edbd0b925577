"""Random clusters with few names, labels and topology domains, so that what predicates look at often coincides."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from partage_scheduler.objects import ApiNode, ApiPod, ApiVolume
from support.objects import PREFERRED, REQUIRED, ZONE, node, pod, volume

T = TypeVar("T")
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
APPS, TIERS, ZONES, SPACES, TEAMS = ("a", "b"), ("x", "y"), ("z1", "z2", "z3"), ("team", "other"), ("1", "2")
CLAIMS = ("c0", "c1", "c2", "c3")
KEYS = ("zone", "rack", "kubernetes.io/hostname")
SLOTS = 8
PODS = 24
IMAGES = ("small", "large")


class Chance:
    """Choices by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311  (no secret)

    def one(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def maybe(self, chance: float = 0.5) -> bool:
        return self._random.random() < chance

    def some(self, choices: Sequence[T], most: int = 2) -> list[T]:
        return [self.one(choices) for _ in range(self._random.randrange(most + 1))]

    def among(self, **choices: Sequence[Any]) -> dict[str, Any]:
        """Some of the keys, each with one of its values."""
        return {key: self.one(values) for key, values in choices.items() if self.maybe()}

    # nodes

    def node(self, slot: int) -> ApiNode:
        labels = self.among(zone=ZONES, rack=("r1", "r2"), cores=("4", "16", "many"), **{ZONE: ZONES, OLD_ZONE: ZONES})
        if self.maybe(0.7):
            labels["zone"] = self.one(ZONES)
        amounts: dict[str, Any] = {"pods": self.one(("3", "110", "110")), "hugepages-2Mi": self.one(("4Mi", "64Mi"))}
        images = [
            {"names": [f"{name}:1"], "sizeBytes": size << 20}
            for name, size in self.some((("small", 50), ("large", 900)))
        ]
        return node(
            f"n{slot}",
            labels=labels,
            taints=tuple(self.taint() for _ in range(self.one((0, 0, 1, 2)))),
            unschedulable=self.maybe(0.1),
            images=tuple(images),
            **amounts,
        )

    def taint(self) -> dict[str, str]:
        effect = self.one(("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"))
        return {
            "key": self.one(("k", "node.kubernetes.io/unschedulable")),
            "value": self.one(("", "v")),
            "effect": effect,
        }

    def toleration(self) -> dict[str, str]:
        return self.among(
            key=("k", "k", "node.kubernetes.io/unschedulable"),
            operator=("Exists", "Exists", "Equal"),
            value=("", "v"),
            effect=("NoSchedule", "NoExecute", "PreferNoSchedule"),
        )

    def node_term(self) -> dict[str, Any]:
        term: dict[str, Any] = {}
        if self.maybe(0.9):
            term["matchExpressions"] = [self.of_nodes() for _ in range(self.one((1, 1, 2)))]
        if self.maybe(0.1):
            term["matchFields"] = [{"key": "metadata.name", "operator": self.one(("In", "NotIn")), "values": ["n1"]}]
        return term

    def of_nodes(self) -> dict[str, Any]:
        if self.maybe(0.2):
            return {"key": "cores", "operator": self.one(("Gt", "Lt")), "values": ["8"]}
        return self.expression(("zone", "rack", "cores"), (*ZONES, "r1", "4"))

    def expression(self, keys: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
        key, operator = self.one(keys), self.one(("In", "In", "NotIn", "Exists", "DoesNotExist"))
        listed = {"values": [self.one(values), self.one(values)]} if operator in {"In", "NotIn"} else {}
        return {"key": key, "operator": operator, **listed}

    # pods

    def labels(self) -> dict[str, str]:
        return self.among(app=APPS, tier=TIERS)

    def selector(self) -> dict[str, Any]:
        labels = {"matchLabels": self.among(app=APPS, tier=TIERS)} if self.maybe(0.8) else {}
        more = self.expression(("app", "tier"), (*APPS, *TIERS))
        return {**labels, **({"matchExpressions": [more]} if self.maybe(0.3) else {})}

    def term(self) -> dict[str, Any]:
        term: dict[str, Any] = {"topologyKey": self.one(KEYS)}
        if self.maybe(0.9):
            term["labelSelector"] = self.selector()
            if self.maybe(0.15):
                term["matchLabelKeys"] = ["tier"]
            if self.maybe(0.15):
                term["mismatchLabelKeys"] = ["app"]
        if self.maybe(0.2):
            term["namespaces"] = self.some(SPACES)
        if self.maybe(0.2):
            term["namespaceSelector"] = {"matchLabels": self.among(team=TEAMS)}
        return term

    def constraint(self) -> dict[str, Any]:
        found = {
            "maxSkew": self.one((1, 1, 2)),
            "topologyKey": self.one(KEYS),
            "whenUnsatisfiable": self.one(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
            **self.among(nodeAffinityPolicy=("Honor", "Ignore"), nodeTaintsPolicy=("Honor", "Ignore")),
        }
        if self.maybe(0.9):
            found["labelSelector"] = self.selector()
        if self.maybe(0.3) and found["whenUnsatisfiable"] == "DoNotSchedule":
            found["minDomains"] = self.one((1, 2, 4))
        if self.maybe(0.2):
            found["matchLabelKeys"] = ["tier"]
        return found

    def affinity(self) -> dict[str, Any]:
        found: dict[str, Any] = {"podAffinity": {}, "podAntiAffinity": {}, "nodeAffinity": {}}
        if self.maybe(0.3):
            found["nodeAffinity"][REQUIRED] = {
                "nodeSelectorTerms": [self.node_term() for _ in range(self.one((1, 1, 2)))]
            }
        if self.maybe(0.3):
            found["nodeAffinity"][PREFERRED] = [{"weight": self.one((1, 5)), "preference": self.node_term()}]
        for each in ("podAffinity", "podAntiAffinity"):
            found[each][REQUIRED] = [self.term() for _ in range(self.one((0, 0, 1, 1, 2)))]
            found[each][PREFERRED] = [
                {"weight": self.one((1, 9)), "podAffinityTerm": self.term()} for _ in range(self.one((0, 0, 1)))
            ]
        return found

    def amounts(self) -> dict[str, str]:
        chosen = self.among(cpu=("1", "250m"), **{"hugepages-2Mi": ("2Mi", "2Mi", "32Mi")})
        return chosen | ({"x.org/y": "1"} if self.maybe(0.05) else {})

    def ports(self) -> list[dict[str, Any]]:
        chosen = self.among(hostIP=("10.0.0.1", "10.0.0.2"), protocol=("TCP", "UDP"))
        return [{"hostPort": self.one((0, 80, 81)), **chosen}] if self.maybe(0.2) else []

    def container(self) -> dict[str, Any]:
        sidecar = {"restartPolicy": "Always"} if self.maybe() else {}
        resources = {"requests": self.amounts(), "limits": self.amounts()}
        return {"name": "c", "resources": resources, "ports": self.ports(), **sidecar}

    def pod(self, name: str) -> ApiPod:
        spec: dict[str, Any] = {"tolerations": [self.toleration() for _ in range(self.one((0, 1, 2)))]}
        if self.maybe(0.15):
            spec["nodeSelector"] = self.among(zone=ZONES)
        if self.maybe(0.6):
            spec["affinity"] = self.affinity()
        if self.maybe(0.4):
            spec["topologySpreadConstraints"] = [self.constraint() for _ in range(self.one((1, 1, 2)))]
        if self.maybe(0.2):
            spec["initContainers"] = [self.container() for _ in range(self.one((1, 2)))]
        if self.maybe(0.1):
            spec["overhead"] = self.amounts()
        if self.maybe(0.1):
            spec["resources"] = {"requests": {"hugepages-2Mi": "8Mi"}}
        if self.maybe(0.2):
            spec["volumes"] = [
                {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in self.some(CLAIMS)
            ]
        return pod(
            name,
            self.labels(),
            namespace=self.one(("team", "team", "other")),
            requests=self.amounts(),
            ports=tuple(self.ports()),
            going=self.maybe(0.15),
            **spec,
        )

    def volume(self, name: str) -> ApiVolume:
        labels = self.among(**{ZONE: ("z1", "z1__z2"), OLD_ZONE: ("z1", "z2")}) if self.maybe(0.3) else {}
        spec: dict[str, Any] = {}
        if self.maybe(0.3):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self.node_term()]}}
        if self.maybe():
            spec["csi"] = {"driver": self.one(("d", "e")), "volumeHandle": self.one(("h1", "h2", "h3"))}
        return volume(name, labels, of_claim=name, **spec)
