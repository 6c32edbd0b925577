"""Objects that the tests of permissions write. Pure."""

from __future__ import annotations

from rig.client.resources import Json
from support.objects import node_body

NODES_OF_THE_TEST = ("n1", "n2")


def an_own_node(name: str) -> Json:
    """A node with something of everything that an advertiser must not change."""
    taint = {"key": "theirs", "value": "kept", "effect": "NoSchedule"}
    return node_body(name, annotations={"theirs": "kept"}, spec={"taints": [taint]})


def a_lease(name: str, *, holder: str | None = None) -> Json:
    """A heartbeat, held by the node that it is named after."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name if holder is None else holder, "leaseDurationSeconds": 40},
    }


def an_event(node: str, **changed: object) -> Json:
    """An event about a node, as its advertiser writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{node}."},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": "CardLost",
        "message": "Card 0 is lost",
        "type": "Warning",
        "source": {"component": "partage-advertiser", "host": node},
        "reportingComponent": "partage-advertiser",
        "reportingInstance": node,
        "count": 1,
        **changed,
    }
