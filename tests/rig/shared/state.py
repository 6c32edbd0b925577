"""The state of a rig, and the changes by a test. Pure.

Each thing is a line, such as `n1: /run/partage/inventory.json`, so that kinds need not be listed. Equal lines, such as
two processes with the same arguments, are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rig.client.resources import Json

REGISTRY: Final = "/registry/"
_WORTH_TELLING: Final = 200
_OF_THE_CLUSTER: Final = {
    "events/": "reports about other objects; they expire by themselves",
    "masterleases/": "the addresses of API servers, kept by themselves",
    "leases/kube-system/": "kept by the components of the control plane",
    "leases/kube-node-lease/": "kept by kubelet for as long as it runs, also when its node was deleted",
    "configmaps/[^/]+/kube-root-ca.crt$": "made in every namespace; a namespace that is left is itself reported",
    "resourceslices/": "published again by their drivers, under other names, when devices change",
    "serviceaccounts/[^/]+/default$": "made in every namespace, too",
}
"""Objects that the cluster itself creates and removes, by key prefix, and why no test is responsible."""
_OF_CONTROLLERS: Final = {
    "node.kubernetes.io/": "taints for whether kubelet beats; a made-up node has none, and gets them after a while",
    "node.alpha.kubernetes.io/ttl": "an annotation that is written some time after the node",
}
"""What controllers write on nodes by themselves, by key prefix."""
_OF_DAEMONS: Final = re.compile(
    # Garbage-collected after a while.
    r"/run/partage/(broker/findings|containers|crishim/(kubelet-spoke|records|reserved)|dra/claims|state)(/|$)"
    r"|/run/partage/dra$"  # created with the first claim
    r"|.* -m partage_isolation --install-library"  # before the broker starts
    r"|.* -m partage_(gpu\.nvml|isolation\.audit\.nvml|plugins\.host)[._]child"  # started on demand
    r"|/\S*/cni/[\w-]+( |$)"  # started briefly by containerd while a pod is created or removed
)
"""Files that daemons keep longer than the containers they are about, and their child processes."""
_BY_ITSELF: Final = re.compile("|".join(_OF_THE_CLUSTER))
_OF_ONE_LIFE: Final = re.compile(r"[0-9a-f]{64}|(?<=:)[0-9]+")


@dataclass(frozen=True)
class State:
    """`stored` is the control plane's data; `silent` is why it can't be read, as a rig may have none."""

    stored: Counter[str] = field(default_factory=Counter[str])
    there: Counter[str] = field(default_factory=Counter[str])
    silent: str = ""

    def what_changed(self, later: State) -> list[str]:
        """One sentence each for what was left and what was removed; empty if nothing changed."""
        if later.silent and not self.silent:
            return [f"the control plane no longer answers: {later.silent}", *_changes(self.there, later.there)]
        if self.silent:
            return _changes(self.there, later.there)
        return _changes(self.stored + self.there, later.stored + later.there)


def objects(keys: Iterable[str]) -> list[str]:
    """Lines for etcd's keys, except for those that the cluster creates and removes by itself."""
    names = [key.removeprefix(REGISTRY) for key in keys]
    return [name for name in names if not _BY_ITSELF.match(name)]


def files(node: str, paths: Iterable[str]) -> list[str]:
    """Lines for the files below a node's /run/partage."""
    return [f"{node}: {path}" for path in paths if not _OF_DAEMONS.match(path)]


def marks(node: Json) -> list[str]:
    """Lines for a node's labels, annotations and taints; of annotations the key, as owners may change the value."""
    metadata, name = node["metadata"], node["metadata"]["name"]
    taints = [(taint["key"], taint["effect"]) for taint in node["spec"].get("taints", [])]
    return [
        *(f"{name}: label {key}={value}" for key, value in metadata.get("labels", {}).items()),
        *(f"{name}: annotation {key}" for key in metadata.get("annotations", {}) if _is_ours(key)),
        *(f"{name}: taint {key}:{effect}" for key, effect in taints if _is_ours(key)),
    ]


def _is_ours(key: str) -> bool:
    return not key.startswith(tuple(_OF_CONTROLLERS))


def process(command: str) -> list[str]:
    """The line of a process, without the parts that differ each time it starts: the container id and the port."""
    return [] if _OF_DAEMONS.match(command) else [f"process {_OF_ONE_LIFE.sub('…', command)}"]


def _changes(before: Counter[str], after: Counter[str]) -> list[str]:
    both = (("left", after - before), ("took", before - after))
    return [f"{verb} {_told(things)}" for verb, things in both if things]


def _told(things: Counter[str]) -> str:
    return "; ".join(line if len(line) <= _WORTH_TELLING else f"{line[:_WORTH_TELLING]}…" for line in sorted(things))
