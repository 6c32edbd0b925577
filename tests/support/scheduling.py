"""Objects for the scheduler's tests, made in a fake API server and read as the scheduler reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from partage_plugins.codecs import encode_inventory
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.keys import INVENTORY
from partage_scheduler.objects import ApiPod
from support.fake_api import FakeApi

NAMESPACE = "team"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
OURS = "partage-scheduler"


def pod_body(name: str, *, limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"limits": limits or {}}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulerName": OURS, "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def create_pod(api: FakeApi, name: str = "p", **more: Any) -> ApiPod:
    return read_pod(api.objects.create(PODS, pod_body(name, **more)))


def read_pod(body: dict[str, Any]) -> ApiPod:
    return msgspec.convert(body, ApiPod)


def stands(api: FakeApi, name: str = "p") -> ApiPod:
    return read_pod(api.objects.get(f"{PODS}/{name}"))


def node_body(name: str, inventory: Inventory | None = None, **allocatable: str) -> dict[str, Any]:
    annotations = {INVENTORY: encode_inventory(inventory).decode()} if inventory else {}
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti", **allocatable}
    return {
        "metadata": {"name": name, "annotations": annotations, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
