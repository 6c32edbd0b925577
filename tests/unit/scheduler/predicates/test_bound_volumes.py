"""Volumes: where bound ones are accessible, how many a node takes, and claims that keep a pod pending."""

from __future__ import annotations

from typing import Any

import pytest

from partage_scheduler.objects import ApiPod
from support.objects import ZONE, claim, csi_node, node, pod, storage_class, volume
from unit.scheduler.placing import World


def using(*claims: str, name: str = "p", namespace: str = "team") -> ApiPod:
    named = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, namespace=namespace, volumes=named)


def world(*nodes: Any, **volumes: Any) -> World:
    there = World(*nodes)
    for name, each in volumes.items():
        there.predicates.put_claim(claim(name, each.name))
        there.predicates.put_volume(each)
    return there


@pytest.mark.parametrize(
    ("term", "where"),
    [
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}, "a b"),
        (
            {
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}],
                "matchExpressions": [{"key": ZONE, "operator": "Exists"}],
            },
            "b",
        ),
        ({}, ""),
    ],
)
def test_of_a_volume_labels_of_nodes_count_alone(term: Any, where: str) -> None:
    """Upstream matches the terms of volumes against a node without a name."""
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    there = world(node("a"), node("b", labels={ZONE: "z1"}), c=volume("v", nodeAffinity=affinity))
    assert there.where(using("c")) == where


def csi(handle: str, driver: str = "d") -> Any:
    return volume(f"v-{handle}", of_claim=handle, csi={"driver": driver, "volumeHandle": handle})


def test_a_claim_that_is_bound_after_its_pod_was_counted_is_counted_then() -> None:
    there = World(node("a"))
    there.predicates.put_csi_node(csi_node("a", d=1))
    there.on("a", using("x", name="has-x"))
    for name in ("x", "y"):
        there.predicates.put_claim(claim(name, f"v-{name}"))
        there.predicates.put_volume(csi(name))
    assert there.where(using("y")) == ""
    there.off("has-x")
    assert there.where(using("y")) == "a"


def test_claims_that_are_not_there_or_going_or_lost_keep_a_pod_waiting() -> None:
    there = World(node("a"))
    assert there.predicates.unsupported(using("c")) == 'persistentvolumeclaim "c" not found'
    there.predicates.put_claim(claim("c", "v"))
    lost = 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'
    assert there.predicates.unsupported(using("c")) == lost
    scratch = pod("p", volumes=[{"name": "scratch", "ephemeral": {}}])
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    assert there.predicates.unsupported(scratch) == waiting


def test_claims_that_are_not_bound_keep_a_pod_waiting_each_with_its_sentence() -> None:
    there = World(node("a"))
    there.predicates.put_claim(claim("c", storageClassName="slow"))
    assert there.predicates.unsupported(using("c")) == "pod has unbound immediate PersistentVolumeClaims"
    there.predicates.put_storage_class(storage_class("slow", "Immediate"))
    assert there.predicates.unsupported(using("c")) == "pod has unbound immediate PersistentVolumeClaims"
    there.predicates.put_storage_class(storage_class("slow", "WaitForFirstConsumer"))
    assert "waits for its first consumer" in (there.predicates.unsupported(using("c")) or "")
    there.predicates.put_claim(claim("c", "v", storageClassName="slow"))
    there.predicates.put_volume(volume("v"))
    assert there.predicates.unsupported(using("c")) is None
