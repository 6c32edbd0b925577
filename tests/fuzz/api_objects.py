"""Any bytes are one error or an object that can be written, read again, counted and queried without another error.

Dropping deeply nested values leaves the same object.

A pod is read, passed to plugins, placed on a node with the same content, and queried for the nodes that fit.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from fuzz import _codecs
from partage_base.kube.answers import decoded, shallow
from partage_base.kube.errors import MalformedResponse
from partage_plugins.api import Slot
from partage_scheduler.objects import ApiNode, ApiPod, seen
from partage_scheduler.predicates import Predicates, needs
from support.objects import node
from unit.scheduler.pods_written import FULL_POD

_NODE: Final = {
    "metadata": {"name": "n1", "labels": {"zone": "a", "cores": "9", "disk": "ssd"}},
    "spec": {"unschedulable": True, "taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"pods": "10", "hugepages-2Mi": "1Gi"},
        "images": [{"names": ["train:3"], "sizeBytes": 9}],
    },
}
_PLAIN: Final = {"metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": {"containers": [{"name": "c"}]}}
_DEEP: Final = b'{"metadata":{"name":"p","managedFields":%b},"spec":{"nodeName":"n1"}}' % (b"[" * 80 + b"]" * 80)
SEEDS: Final = (*(json.dumps(each).encode() for each in (FULL_POD, _NODE, _PLAIN)), _DEEP)
DICTIONARY: Final = (
    *_codecs.JSON_WORDS,
    *(word.encode() for word in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Always", "Equal", "NoExecute")),
    *(word.encode() for word in ("ScheduleAnyway", "DoNotSchedule", "Honor", "Ignore", "labelSelector", "topologyKey")),
    b"metadata.name",
    b"zone",
)


def target(data: bytes) -> str:
    """Decodes the input as a node, and as a pod on it."""
    try:
        found = decoded("GET /it", data, ApiPod)
        there = decoded("GET /it", data, ApiNode)
    except MalformedResponse:
        return "refused"
    if decoded("GET /it", msgspec.json.encode(found), ApiPod) != found:
        raise AssertionError("a pod changed on its way")
    if decoded("GET /it", shallow(data), ApiPod) != found:
        raise AssertionError("something that is read was left out")
    seen(found)
    room = needs(found)
    if room.cpu_milli < 0 or room.memory_bytes < 0:
        raise AssertionError(f"a pod needs less than nothing: {room}")
    return _asked(found, there)


def _asked(found: ApiPod, there: ApiNode) -> str:
    predicates = Predicates()
    predicates.put_node(Slot(0), node("n1", labels={"zone": "a", "cores": "9", "disk": "ssd"}))
    predicates.put_node(Slot(2), there)
    why = predicates.unsupported(found)
    before = [(each.reason, each.flags(3).tolist()) for each in predicates.barred(found, 3)]
    predicates.preferences(found, 3)
    predicates.put_pod(Slot(0), found)
    predicates.barred(found, 3)
    predicates.remove_pod(found.uid)
    if [(each.reason, each.flags(3).tolist()) for each in predicates.barred(found, 3)] != before:
        raise AssertionError("a pod that came and went left something behind")
    return f"{why is None}, barred by {len(before)}"
